// SettingUnit: values written with their unit, "20ms" or "64MiB", for settings whose key ends in
// one.
#pragma once

#include "base/settings.h"

// Whether text is a number with a unit that fits the row's; a whole number where the row wants one.
bool setting_unit(const Setting *row, const char *text, SettingValue *out);
// How to write one for this row: "20ms"; NULL when its key has no unit.
const char *setting_unit_example(const Setting *row);
