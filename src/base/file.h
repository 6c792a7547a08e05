// File: whole files in, whole files out. Every error names the path; no reader sees half a write.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

// The bytes of a regular file of at most cap bytes, with a '\0' behind them that len leaves out.
MUST_USE Err file_read(const char *path, size_t cap, Arena *a, char **out, size_t *len);
MUST_USE Err file_open(const char *path, FILE **out, size_t *len);  // regular files, for reading

// A file being written beside path. Until file_commit returns, path keeps what it held.
typedef struct AtomicFile {
    FILE *out;         // write here; an error is remembered until file_commit
    char  path[4096];  // what will be replaced, links followed
    char  temp[4096];  // "": path is a pipe or a device and is written directly
} AtomicFile;

MUST_USE Err file_begin(AtomicFile *f, const char *path);
MUST_USE Err
     file_commit(AtomicFile *f);  // on failure nothing but path remains, as it was or complete
void file_drop(AtomicFile *f);    // changed our mind; harmless after file_commit
MUST_USE Err file_replace(const char *path, const void *data, size_t len);

MUST_USE Err file_make_dirs(const char *path);  // with its parents; existing is fine
MUST_USE Err file_cache_dir(Arena       *a,
                            const char **out);  // the user's, for us; created when missing
Err          file_failed(const char *doing, const char *path);  // ERR_IO with the text of errno
