// Settings: typed configuration values declared as rows, read from YAML or key=value.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/table.h"

// #define CHIP_SETTINGS(X)
//     X(accels, int,    4,      1,   64,  "accelerators of the chip")
//     X(load,   double, 0.7,    0.0, 2.0, "offered load; 1.0 saturates the chip")
//     X(policy, string, "fcfs", 1,   63,  "scheduling policy; the range is its length in bytes")
// typedef struct ChipSettings {
// #define X(...) SETTING_FIELD(__VA_ARGS__)
//     CHIP_SETTINGS(X)
// #undef X
// } ChipSettings;
// static const Setting chip_settings[] = {
// #define X(...) SETTING_ROW(ChipSettings, __VA_ARGS__)
//     CHIP_SETTINGS(X)
// #undef X
// };
typedef enum SettingKind {
    SETTING_int,
    SETTING_int64,
    SETTING_double,
    SETTING_bool,
    SETTING_string
} SettingKind;

typedef union SettingValue {
    int64_t     i;  // int, int64 and bool; bounds of a string's length
    double      d;
    const char *s;
} SettingValue;

typedef struct Setting {
    const char  *key, *about;
    SettingKind  kind;
    size_t       offset;       // in the struct of values
    SettingValue def, lo, hi;  // a bool has no range
} Setting;

typedef struct Settings {
    const Setting *rows;
    uint32_t       n_rows;
    void          *values;  // the struct
    Arena         *arena;   // owns the strings
} Settings;

void settings_default(Settings *s);  // a default outside its own range aborts

// On an error nothing changes; keys that do not occur keep their value.
MUST_USE Err settings_load(Settings *s, const char *path);
MUST_USE Err settings_parse(Settings *s, const char *name, const char *text, size_t len);

MUST_USE Err settings_set(Settings *s, const char *assignment);  // "key=value"
// Sets one key; errors begin with `where`. *row gets the index of its row; may be NULL.
MUST_USE Err settings_put(Settings *s, const char *where, const char *key, const char *value,
                          uint32_t *row);
void         settings_table(const Settings *s, Table *out);  // key, value, default, range, help

#define SETTING_FIELD(name, kind, def, lo, hi, about) SETTING_TYPE_##kind name;
#define SETTING_ROW(T, name, kind, def_, lo_, hi_, about_)                                         \
    {#name,                                                                                        \
     about_,                                                                                       \
     SETTING_KIND_##kind,                                                                          \
     offsetof(T, name),                                                                            \
     {.SETTING_DEF_##kind = (def_)},                                                               \
     {.SETTING_RANGE_##kind = (lo_)},                                                              \
     {.SETTING_RANGE_##kind = (hi_)}},

// bool may arrive expanded to _Bool.
#define SETTING_TYPE_int     int
#define SETTING_TYPE_int64   int64_t
#define SETTING_TYPE_double  double
#define SETTING_TYPE_bool    bool
#define SETTING_TYPE__Bool   bool
#define SETTING_TYPE_string  const char *
#define SETTING_KIND_int     SETTING_int
#define SETTING_KIND_int64   SETTING_int64
#define SETTING_KIND_double  SETTING_double
#define SETTING_KIND_bool    SETTING_bool
#define SETTING_KIND__Bool   SETTING_bool
#define SETTING_KIND_string  SETTING_string
#define SETTING_DEF_int      i
#define SETTING_DEF_int64    i
#define SETTING_DEF_double   d
#define SETTING_DEF_bool     i
#define SETTING_DEF__Bool    i
#define SETTING_DEF_string   s
#define SETTING_RANGE_int    i
#define SETTING_RANGE_int64  i
#define SETTING_RANGE_double d
#define SETTING_RANGE_bool   i
#define SETTING_RANGE__Bool  i
#define SETTING_RANGE_string i

// A row's value in the struct of values; conversion from text, with the range check, and to text.
SettingValue setting_read(const Setting *row, const void *values);
bool         setting_in_range(const Setting *row, SettingValue v);
MUST_USE Err setting_parse(const Setting *row, const char *text,
                           SettingValue *out);                                // borrows text
void         setting_range_text(const Setting *row, char *out, size_t size);  // "1 to 64"
const char  *setting_text(const Setting *row, SettingValue v, char *out, size_t size);

// Parses a number with a unit ("20ms", "64MiB") for rows with a key suffix (_ms, _mb). False
// if text is none, or is not a whole multiple where the row takes integers.
bool setting_unit(const Setting *row, const char *text, SettingValue *out);
// An example for the row, such as "20ms"; NULL if its key has no unit.
const char *setting_unit_example(const Setting *row);
