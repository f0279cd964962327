# Case files are JSON, read at run time; the reader and the generators are C, linked into harness and tests.

CASES_SOURCES := $(wildcard cases/*.c)
CASES_OBJECTS := $(call objects,common,$(CASES_SOURCES))
