// Utf8: reads text that claims to be UTF-8, never past its end, and knows its width on a terminal.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_BAD UINT32_MAX

uint32_t utf8_next(const char **at, const char *end);  // a broken byte: UTF8_BAD, moves on by one
size_t   utf8_put(uint32_t point, char out[4]);        // bytes written; U+FFFD for what is no point
bool     utf8_ok(const char *s, size_t len);
uint32_t utf8_width(uint32_t point);    // terminal columns: 0 combining, 2 East Asian wide, else 1
bool     utf8_control(uint32_t point);  // moves the cursor or worse, so is never printed as it is
