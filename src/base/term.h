// Term: what the stream at the other end can show.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

bool     term_is(FILE *f);       // a person is watching
bool     term_colour(FILE *f);   // a terminal that is not dumb, and NO_COLOR is unset or empty
uint32_t term_columns(FILE *f);  // 80 when unknown
