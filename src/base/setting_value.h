// SettingValue: one value of a setting, from text and back, within the range of its row.
#pragma once

#include "base/settings.h"

// What the struct of values holds for a row.
SettingValue setting_read(const Setting *row, const void *values);
bool         setting_in_range(const Setting *row, SettingValue v);
MUST_USE Err setting_parse(const Setting *row, const char *text,
                           SettingValue *out);                                // borrows text
void         setting_range_text(const Setting *row, char *out, size_t size);  // "1 to 64"
const char  *setting_text(const Setting *row, SettingValue v, char *out, size_t size);
