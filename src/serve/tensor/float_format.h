// Float format: floating-point numbers in the fewest decimal digits that read back to the same
// value.
#pragma once

#include <stddef.h>

enum { FLOAT_FORMAT_ROOM = 32 };

// Writes a finite number as JSON, without a terminator; returns the number of bytes. At powers of
// two it may use one digit more than necessary.
size_t float_format_f32(float v, char out[FLOAT_FORMAT_ROOM]);
size_t float_format_f64(double v, char out[FLOAT_FORMAT_ROOM]);
