// Shortest: floating-point numbers in as few digits as read back to the same number.
#pragma once

#include <stddef.h>

enum { FLOAT_FORMAT_ROOM = 32 };

// Writes a finite number as JSON has it, without a terminator; returns how many bytes. Where two
// floats' sizes meet, at powers of two, it may take a digit more than the fewest.
size_t float_format_f32(float v, char out[FLOAT_FORMAT_ROOM]);
size_t float_format_f64(double v, char out[FLOAT_FORMAT_ROOM]);
