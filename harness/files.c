/* Files: read whole, write whole or not at all, list, hash.
 *
 * Writing: an unnamed file (O_TMPFILE), its data, fsync, then a link under a hidden name and a rename over the final
 * one. A process killed at any point leaves either the old file or the new one; at worst a whole file under its hidden
 * name, which the next run removes. File systems without O_TMPFILE get a hidden file from the start. */
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pabd_status pabd_file_read(const char *path, char **text, size_t *size, pabd_error *error) {
  *text = NULL;
  if (size) *size = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return pabd_fail(error, PABD_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return pabd_fail(error, PABD_ERR_IO, "%s: not a regular file", path);
  }
  size_t length = (size_t)info.st_size, done = 0;
  char *data = malloc(length + 1);
  if (!data) {
    close(descriptor);
    return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory for %zu bytes", path, length);
  }
  while (done < length) {
    ssize_t got = read(descriptor, data + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += (size_t)got;
  }
  close(descriptor);
  if (done < length) {
    free(data);
    return pabd_fail(error, PABD_ERR_IO, "%s: read %zu of %zu bytes", path, done, length);
  }
  data[length] = 0;
  *text = data;
  if (size) *size = length;
  return PABD_OK;
}

/* Splits into the folder ("." when there is none) and the name. */
static void split_path(const char *path, char *folder, size_t folder_size, const char **name) {
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  if (!slash)
    snprintf(folder, folder_size, ".");
  else if (slash == path)
    snprintf(folder, folder_size, "/");
  else
    snprintf(folder, folder_size, "%.*s", (int)(slash - path), path);
}

/* ".<name>.<process>.tmp", cut so that the file system's limit of 255 characters holds. */
static void hidden_name(const char *folder, const char *name, char *out) {
  pabd_path_format(out, "%s/.%.200s.%ld.tmp", folder, name, (long)getpid());
}

pabd_status pabd_new_file_open(pabd_new_file *file, const char *path, pabd_error *error) {
  char folder[PABD_PATH_SIZE];
  const char *name;
  memset(file, 0, sizeof *file);
  file->descriptor = -1;
  if (strlen(path) >= sizeof file->path) return pabd_fail(error, PABD_ERR_INPUT, "%.80s...: path too long", path);
  snprintf(file->path, sizeof file->path, "%s", path);
  struct stat info;
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    file->is_device = 1; /* a file renamed to /dev/null would take its place */
    file->descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (file->descriptor < 0) return pabd_fail(error, PABD_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    return PABD_OK;
  }
  split_path(path, folder, sizeof folder, &name);
  file->descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (file->descriptor < 0) {
    hidden_name(folder, name, file->hidden);
    file->descriptor = open(file->hidden, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0644);
  }
  if (file->descriptor < 0) return pabd_fail(error, PABD_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  return PABD_OK;
}

pabd_status pabd_new_file_commit(pabd_new_file *file, pabd_error *error) {
  int cause = 0;
  if (file->is_device) {
    close(file->descriptor);
    file->descriptor = -1;
    return PABD_OK;
  }
  if (fsync(file->descriptor) != 0 && errno != EINVAL) cause = errno;
  if (!cause && !file->hidden[0]) {
    char folder[PABD_PATH_SIZE], self[64];
    const char *name;
    split_path(file->path, folder, sizeof folder, &name);
    hidden_name(folder, name, file->hidden);
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->descriptor);
    unlink(file->hidden);
    if (linkat(AT_FDCWD, self, AT_FDCWD, file->hidden, AT_SYMLINK_FOLLOW) != 0) cause = errno;
  }
  if (!cause && rename(file->hidden, file->path) != 0) cause = errno;
  if (cause && file->hidden[0]) unlink(file->hidden);
  close(file->descriptor);
  file->descriptor = -1;
  if (cause) return pabd_fail(error, PABD_ERR_IO, "%s: cannot write: %s", file->path, strerror(cause));
  return PABD_OK;
}

void pabd_new_file_abandon(pabd_new_file *file) {
  if (file->descriptor < 0) return;
  close(file->descriptor);
  if (file->hidden[0]) unlink(file->hidden);
  file->descriptor = -1;
}

pabd_status pabd_write_all(int descriptor, const void *data, size_t size, pabd_error *error) {
  const char *from = data;
  while (size > 0) {
    ssize_t put = write(descriptor, from, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return pabd_fail(error, PABD_ERR_IO, "cannot write: %s", strerror(errno));
    from += put;
    size -= (size_t)put;
  }
  return PABD_OK;
}

pabd_status pabd_file_write_whole(const char *path, const void *data, size_t size, pabd_error *error) {
  pabd_new_file file;
  PABD_TRY(pabd_new_file_open(&file, path, error));
  if (pabd_write_all(file.descriptor, data, size, NULL) != PABD_OK) {
    int cause = errno;
    pabd_new_file_abandon(&file);
    return pabd_fail(error, PABD_ERR_IO, "%s: cannot write: %s", path, strerror(cause));
  }
  return pabd_new_file_commit(&file, error);
}

void pabd_remove_leftovers(const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) return;
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] != '.' || length < 6 || strcmp(entry->d_name + length - 4, ".tmp") != 0) continue;
    /* The process number stands between the last two dots; a file of a living process is none of our business. */
    const char *dot = entry->d_name + length - 4;
    while (dot > entry->d_name && dot[-1] != '.') --dot;
    long process = strtol(dot, NULL, 10);
    if (process <= 0 || kill((pid_t)process, 0) == 0 || errno != ESRCH) continue;
    char path[PABD_PATH_SIZE];
    pabd_path_format(path, "%s/%s", folder, entry->d_name);
    unlink(path);
  }
  closedir(dir);
}

void pabd_path_format(char *path, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(path, PABD_PATH_SIZE, format, arguments);
  va_end(arguments);
}

int pabd_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int pabd_is_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

pabd_status pabd_make_folders(const char *path, pabd_error *error) {
  char part[PABD_PATH_SIZE];
  if (strlen(path) >= sizeof part) return pabd_fail(error, PABD_ERR_INPUT, "%.80s...: path too long", path);
  for (size_t k = 1; k <= strlen(path); ++k) {
    if (path[k] != '/' && path[k] != 0) continue;
    memcpy(part, path, k);
    part[k] = 0;
    if (mkdir(part, 0755) != 0 && errno != EEXIST)
      return pabd_fail(error, PABD_ERR_IO, "%s: cannot make folder: %s", part, strerror(errno));
  }
  if (!pabd_is_folder(path)) return pabd_fail(error, PABD_ERR_IO, "%s: not a folder", path);
  return PABD_OK;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

pabd_status pabd_list_folder(const char *folder, const char *suffix, char ***names, int32_t *count, pabd_error *error) {
  size_t suffix_length = strlen(suffix);
  int32_t capacity = 0;
  *names = NULL;
  *count = 0;
  DIR *dir = opendir(folder);
  if (!dir) return PABD_OK;
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] == '.' || length <= suffix_length) continue;
    if (strcmp(entry->d_name + length - suffix_length, suffix) != 0) continue;
    if (*count == capacity) {
      capacity = capacity ? 2 * capacity : 32;
      char **moved = realloc(*names, (size_t)capacity * sizeof *moved);
      if (!moved) break;
      *names = moved;
    }
    char *name = strndup(entry->d_name, length - suffix_length);
    if (!name) break;
    (*names)[(*count)++] = name;
    errno = 0;
  }
  int failed = errno == ENOMEM;
  closedir(dir);
  if (failed) {
    pabd_free_names(*names, *count);
    *names = NULL;
    *count = 0;
    return pabd_fail(error, PABD_ERR_MEMORY, "%s: out of memory while listing", folder);
  }
  if (*count) qsort(*names, (size_t)*count, sizeof **names, compare_names);
  return PABD_OK;
}

void pabd_free_names(char **names, int32_t count) {
  for (int32_t k = 0; k < count; ++k) free(names[k]);
  free(names);
}

uint64_t pabd_hash_bytes(uint64_t seed, const void *data, size_t size) {
  const unsigned char *bytes = data;
  for (size_t k = 0; k < size; ++k) seed = (seed ^ bytes[k]) * 1099511628211ull;
  return seed;
}

uint64_t pabd_hash_text(uint64_t seed, const char *text) {
  return pabd_hash_bytes(seed, text, strlen(text) + 1);
}

pabd_status pabd_hash_file(const char *path, uint64_t *hash, pabd_error *error) {
  char *data;
  size_t size;
  PABD_TRY(pabd_file_read(path, &data, &size, error));
  *hash = pabd_hash_bytes(PABD_HASH_START, data, size);
  free(data);
  return PABD_OK;
}
