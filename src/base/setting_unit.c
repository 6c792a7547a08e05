#include "base/setting_unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Unit {
    const char *name;
    char        of;    // 't'ime or 'b'ytes
    double      size;  // in seconds, or bytes
} Unit;

static const Unit units[] = {
    {"ns", 't', 1e-9}, {"us", 't', 1e-6},     {"ms", 't', 1e-3}, {"s", 't', 1},
    {"min", 't', 60},  {"h", 't', 3600},      {"B", 'b', 1},     {"KiB", 'b', 1024},
    {"kB", 'b', 1e3},  {"MiB", 'b', 1 << 20}, {"MB", 'b', 1e6},  {"GiB", 'b', 1 << 30},
    {"GB", 'b', 1e9},  {NULL, 0, 0},
};

// Ends of keys. What is called kb and mb counts in 1024s everywhere.
static const Unit ends[] = {
    {"_ns", 't', 1e-9}, {"_us", 't', 1e-6},    {"_ms", 't', 1e-3}, {"_s", 't', 1},
    {"_kb", 'b', 1024}, {"_mb", 'b', 1 << 20}, {NULL, 0, 0},
};

static const Unit *end_of(const Setting *row) {
    size_t n = strlen(row->key);
    bool   number =
        row->kind == SETTING_int || row->kind == SETTING_int64 || row->kind == SETTING_double;
    for (const Unit *u = ends; number && u->name != NULL; u++) {
        size_t len = strlen(u->name);
        if (n > len && strcmp(row->key + n - len, u->name) == 0) return u;
    }
    return NULL;
}

const char *setting_unit_example(const Setting *row) {
    const Unit *own = end_of(row);
    return own == NULL ? NULL : own->of == 't' ? "20ms" : "64MiB";
}

static const Unit *find(const char *name, char of) {
    for (const Unit *u = units; u->name != NULL; u++)
        if (u->of == of && strcmp(u->name, name) == 0) return u;
    return NULL;
}

bool setting_unit(const Setting *row, const char *text, SettingValue *out) {
    const Unit *own = end_of(row);
    size_t      digits = strspn(text, ".0123456789"), space = strspn(text + digits, " ");
    const Unit *unit = own != NULL ? find(text + digits + space, own->of) : NULL;
    char       *end = NULL;
    if (unit == NULL || digits == 0 || digits > 32) return false;
    double v = strtod(text, &end) * (unit->size / own->size);
    if (end != text + digits || !(v < 1e15)) return false;
    if (row->kind == SETTING_double) {
        out->d = v;
        return true;
    }
    out->i = (int64_t)llround(v);
    return fabs(v - (double)out->i) <= 1e-9 * fabs(v);
}
