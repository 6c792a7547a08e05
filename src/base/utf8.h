// Utf8: decoding of untrusted UTF-8, encoding, and display width.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD UINT32_MAX

uint32_t utf8_next(const char **at, const char *end);  // invalid byte: UTF8_BAD, advances by one
size_t   utf8_put(uint32_t point, char out[4]);        // bytes written; U+FFFD for invalid points
bool     utf8_ok(const char *s, size_t len);
uint32_t utf8_width(uint32_t point);    // terminal columns: 0 combining, 2 East Asian wide, else 1
bool     utf8_control(uint32_t point);  // control characters, which are never printed raw
