/* Files: read whole, write whole or not at all, list, hash. */
#ifndef PABD_FILES_H
#define PABD_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "pabd_status.h"

#define PABD_PATH_SIZE 1024

/* The file's bytes with a terminating 0, malloc'ed into *text. PABD_ERR_IO or PABD_ERR_MEMORY; *text is then NULL. */
pabd_status pabd_file_read(const char *path, char **text, size_t *size, pabd_error *error);

/* A file under construction: it has no name (where the system allows that) until it is committed, so that a killed
 * process leaves nothing behind. */
typedef struct pabd_new_file {
  int descriptor;              /* -1: none open */
  char path[PABD_PATH_SIZE];   /* final name */
  char hidden[PABD_PATH_SIZE]; /* temporary name in the same folder; empty while the file has no name at all */
  int is_device;               /* the path is a device or a pipe: written to as it is, never replaced */
} pabd_new_file;

pabd_status pabd_new_file_open(pabd_new_file *file, const char *path, pabd_error *error);
/* Syncs the data and gives the file its name, replacing an older file in one step. Closes it in any case. */
pabd_status pabd_new_file_commit(pabd_new_file *file, pabd_error *error);
/* Throws the file away. Does nothing when none is open. */
void pabd_new_file_abandon(pabd_new_file *file);
/* Writes all bytes, whatever signals arrive. */
pabd_status pabd_write_all(int descriptor, const void *data, size_t size, pabd_error *error);
/* Open, write, commit. */
pabd_status pabd_file_write_whole(const char *path, const void *data, size_t size, pabd_error *error);
/* Removes hidden leftovers (".<name>.<process>.tmp") of processes that are gone. */
void pabd_remove_leftovers(const char *folder);

/* printf into a path buffer of PABD_PATH_SIZE; a path that is too long is cut (and will then not be found). */
void pabd_path_format(char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes the folder and its parents. */
pabd_status pabd_make_folders(const char *path, pabd_error *error);
int pabd_is_folder(const char *path);
int pabd_is_file(const char *path);

/* Names in `folder` that end with `suffix`, sorted, without the suffix, malloc'ed (free each and the array). A folder
 * that does not exist gives none. */
pabd_status pabd_list_folder(const char *folder, const char *suffix, char ***names, int32_t *count, pabd_error *error);
void pabd_free_names(char **names, int32_t count);

/* 64-bit FNV-1a, continued from `seed`; start with PABD_HASH_START. */
#define PABD_HASH_START 14695981039346656037ull
uint64_t pabd_hash_bytes(uint64_t seed, const void *data, size_t size);
uint64_t pabd_hash_text(uint64_t seed, const char *text); /* with its terminating 0, so that "ab","c" != "a","bc" */
pabd_status pabd_hash_file(const char *path, uint64_t *hash, pabd_error *error);

#endif
