// File: whole-file reads and atomic writes. Every error names the path.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

// Reads a regular file of at most cap bytes; a '\0' follows that len does not count.
MUST_USE Err file_read(const char *path, size_t cap, Arena *a, char **out, size_t *len);
// Reads a file into a temporary arena and calls visit; text is valid during the call.
typedef Err  FileVisit(void *ctx, const char *path, char *text, size_t len);
MUST_USE Err file_visit(const char *path, size_t cap, FileVisit *visit, void *ctx);
MUST_USE Err file_open(const char *path, FILE **out, size_t *len);  // regular files, for reading

// A temporary file beside path that replaces it by rename: readers see the old or the new content.
typedef struct AtomicFile {
    FILE *out;         // write here; write errors are reported by file_commit
    char  path[4096];  // the file to replace, symbolic links resolved
    char  temp[4096];  // "": path is a pipe or device and is written directly
    bool  fresh;       // path must not exist: file_commit replaces nothing
} AtomicFile;

MUST_USE Err file_begin(AtomicFile *f, const char *path);
MUST_USE Err file_commit(AtomicFile *f);  // on failure the temporary file is removed
void         file_drop(AtomicFile *f);    // discards it; no effect after file_commit
MUST_USE Err file_replace(const char *path, const void *data, size_t len);
// Creates a file with its content at once, writable by its owner only; path is not a link.
// *created false: something of that name exists and is left as it is.
MUST_USE Err file_create(const char *path, const void *data, size_t len, bool *created);
// Follows symbolic links to the file at their end, which need not exist.
MUST_USE Err file_target(const char *path, char *out, size_t size);

bool file_is_folder(const char *path);
// The folder that a path is in, "." for a bare name.
MUST_USE Err file_folder(const char *path, char *out, size_t size);
MUST_USE Err file_make_dirs(const char *path);            // and its parents, where missing
MUST_USE Err file_cache_dir(Arena *a, const char **out);  // per user (XDG), created if missing
Err          file_failed(const char *doing, const char *path);  // ERR_IO with the text of errno
