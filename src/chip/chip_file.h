// ChipFile: descriptions of units and packages, embedded in the program or read from YAML files.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"

typedef struct ChipFile {  // of data/chips, embedded
    const char *name, *text;
} ChipFile;

extern const ChipFile chip_files[];  // the last name is NULL

bool        chip_file_same(const char *a, const char *b);  // names, ignoring case and - against _
const char *chip_file_name(bool     package,
                           uint32_t i);  // of the i-th package or unit; NULL after the last

// The text of an embedded package or unit, or of a YAML file. Relative paths are resolved beside
// `beside`, unless NULL. *name is for error messages.
MUST_USE Err chip_file_find(bool package, const char *what, const char *beside, Arena *a,
                            const char **name, const char **text, size_t *len);

// Fills in s->values. Fails if a key is missing that is not optional: a default would silently be
// another chip's value. optional: NULL after the last.
MUST_USE Err chip_file_parse(const char *name, const char *text, size_t len, Settings *s,
                             const char *const *optional);
