// ChipFile: the units and packages that are part of the program, found by name.
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/settings.h"

typedef struct ChipFile {  // data/chips, as built in
    const char *name, *text;
} ChipFile;

extern const ChipFile chip_files[];  // ends with a name of NULL

bool        chip_file_same(const char *a, const char *b);  // names, whatever their case, - and _
const char *chip_file_name(bool package, uint32_t i);      // of the packages or the units

// The text of a shipped package or unit, or of a YAML file by its path, looked for beside `beside`
// when that is not NULL. *name is what errors call it.
MUST_USE Err chip_file_find(bool package, const char *what, const char *beside, Arena *a,
                            const char **name, const char **text, size_t *len);

// All rows but those that may be left out must be there: what a file leaves out would silently be
// another chip's.
MUST_USE Err chip_file_check_complete(const char *name, const char *text, size_t len,
                                      const Settings *s, const char *const *optional);
