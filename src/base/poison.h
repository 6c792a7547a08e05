// Poison: a test mode that fills memory with a pattern when it is given back, so that bytes of an
// earlier use that reach an answer are found. On with COTENANT_POISON=1 in the environment.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { POISON_BYTE = 0xA5 };

void poison_set(bool on);             // instead of the environment
void poison_fill(void *p, size_t n);  // nothing while the mode is off; accepts NULL with n = 0
