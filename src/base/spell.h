// Spell: the known word a person most likely meant.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t spell_distance(const char *a, const char *b);  // letters changed, added, lost or swapped
const char *spell_nearest(const char *word, const char *const *known, size_t n);  // NULL: none near
