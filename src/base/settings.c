#include "base/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/yamldoc.h"

typedef struct UnitSuffix {
    const char *name;
    char        of;    // 't'ime or 'b'ytes
    double      size;  // in seconds, or bytes
} UnitSuffix;

static const UnitSuffix units[] = {
    {"ns", 't', 1e-9}, {"us", 't', 1e-6},     {"ms", 't', 1e-3}, {"s", 't', 1},
    {"min", 't', 60},  {"h", 't', 3600},      {"B", 'b', 1},     {"KiB", 'b', 1024},
    {"kB", 'b', 1e3},  {"MiB", 'b', 1 << 20}, {"MB", 'b', 1e6},  {"GiB", 'b', 1 << 30},
    {"GB", 'b', 1e9},  {NULL, 0, 0},
};

// Key suffixes; _kb and _mb are multiples of 1024.
static const UnitSuffix ends[] = {
    {"_ns", 't', 1e-9}, {"_us", 't', 1e-6},    {"_ms", 't', 1e-3}, {"_s", 't', 1},
    {"_kb", 'b', 1024}, {"_mb", 'b', 1 << 20}, {NULL, 0, 0},
};

static const UnitSuffix *end_of(const Setting *row) {
    size_t n = strlen(row->key);
    bool   number =
        row->kind == SETTING_int || row->kind == SETTING_int64 || row->kind == SETTING_double;
    for (const UnitSuffix *u = ends; number && u->name != NULL; u++) {
        size_t len = strlen(u->name);
        if (n > len && strcmp(row->key + n - len, u->name) == 0) return u;
    }
    return NULL;
}

const char *setting_unit_example(const Setting *row) {
    const UnitSuffix *own = end_of(row);
    return own == NULL ? NULL : own->of == 't' ? "20ms" : "64MiB";
}

static const UnitSuffix *find(const char *name, char of) {
    for (const UnitSuffix *u = units; u->name != NULL; u++)
        if (u->of == of && strcmp(u->name, name) == 0) return u;
    return NULL;
}

bool setting_unit(const Setting *row, const char *text, SettingValue *out) {
    const UnitSuffix *own = end_of(row);
    size_t            digits = strspn(text, ".0123456789"), space = strspn(text + digits, " ");
    const UnitSuffix *unit = own != NULL ? find(text + digits + space, own->of) : NULL;
    char             *end = NULL;
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

static const char *const kind_names[] = {
    [SETTING_int] = "a whole number", [SETTING_int64] = "a whole number",
    [SETTING_double] = "a number",    [SETTING_bool] = "true or false",
    [SETTING_string] = "text",
};

SettingValue setting_read(const Setting *row, const void *values) {
    const void  *at = (const char *)values + row->offset;
    SettingValue v = {0};
    switch (row->kind) {
    case SETTING_int: v.i = *(const int *)at; break;
    case SETTING_int64: v.i = *(const int64_t *)at; break;
    case SETTING_double: v.d = *(const double *)at; break;
    case SETTING_bool: v.i = *(const bool *)at; break;
    case SETTING_string: v.s = *(const char *const *)at; break;
    }
    return v;
}

bool setting_in_range(const Setting *row, SettingValue v) {
    switch (row->kind) {
    case SETTING_double: return v.d >= row->lo.d && v.d <= row->hi.d;
    case SETTING_bool: return v.i == 0 || v.i == 1;
    case SETTING_string:
        return strlen(v.s) >= (size_t)row->lo.i && strlen(v.s) <= (size_t)row->hi.i;
    case SETTING_int:
        if (v.i < INT_MIN || v.i > INT_MAX) return false;
        break;
    case SETTING_int64: break;
    }
    return v.i >= row->lo.i && v.i <= row->hi.i;
}

void setting_range_text(const Setting *row, char *out, size_t size) {
    switch (row->kind) {
    case SETTING_double: (void)snprintf(out, size, "%.15g to %.15g", row->lo.d, row->hi.d); break;
    case SETTING_bool: (void)snprintf(out, size, "true or false"); break;
    case SETTING_string:
        (void)snprintf(out, size, "%" PRId64 " to %" PRId64 " bytes", row->lo.i, row->hi.i);
        break;
    case SETTING_int:
    case SETTING_int64:
        (void)snprintf(out, size, "%" PRId64 " to %" PRId64, row->lo.i, row->hi.i);
        break;
    }
}

const char *setting_text(const Setting *row, SettingValue v, char *out, size_t size) {
    switch (row->kind) {
    case SETTING_double: (void)snprintf(out, size, "%.15g", v.d); break;
    case SETTING_bool: (void)snprintf(out, size, "%s", v.i != 0 ? "true" : "false"); break;
    case SETTING_string: return v.s;
    case SETTING_int:
    case SETTING_int64: (void)snprintf(out, size, "%" PRId64, v.i); break;
    }
    return out;
}

static bool parse_whole(const char *text, int64_t *out) {
    size_t digits = text[0] == '-' || text[0] == '+';
    if (text[digits] == '\0' || text[digits + strspn(text + digits, "0123456789")] != '\0')
        return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);  // out of range sets errno to ERANGE
    return true;
}

static bool parse_real(const char *text, double *out) {
    if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') return false;
    char *end;
    *out = strtod(text, &end);
    return *end == '\0' && end != text;
}

static bool parse_bool(const char *text, int64_t *out) {
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    return false;
}

static bool parse_kind(const Setting *row, const char *text, SettingValue *out) {
    switch (row->kind) {
    case SETTING_int:
    case SETTING_int64: return parse_whole(text, &out->i);
    case SETTING_double: return parse_real(text, &out->d);
    case SETTING_bool: return parse_bool(text, &out->i);
    case SETTING_string: out->s = text; return utf8_ok(text, strlen(text));
    }
    return false;
}

Err setting_parse(const Setting *row, const char *text, SettingValue *out) {
    SettingValue v = {0};
    char         range[96];
    setting_range_text(row, range, sizeof range);
    errno = 0;
    const char *unit = setting_unit_example(row);
    if (!parse_kind(row, text, &v) && !setting_unit(row, text, &v)) {
        if (row->kind == SETTING_string) return err_set(ERR_CONFIG, "the text is not UTF-8");
        if (row->kind == SETTING_bool)
            return err_set(ERR_CONFIG, "'%.100s' is neither true nor false", text);
        return err_set(ERR_CONFIG, "'%.100s' is not %s; write one from %s%s%s", text,
                       kind_names[row->kind], range, unit != NULL ? ", or with a unit: " : "",
                       unit != NULL ? unit : "");
    }
    bool whole = row->kind == SETTING_int || row->kind == SETTING_int64;
    if ((whole && errno == ERANGE) || !setting_in_range(row, v))
        return err_set(ERR_CONFIG, "'%.100s' is out of range; allowed is %s", text, range);
    *out = v;
    return ERR_OK;
}

enum { FILE_MAX = 1 << 20, SCRATCH_BYTES = 1 << 24 };

static void *field(const Settings *s, const Setting *row) {
    return (char *)s->values + row->offset;
}

static void store(const Settings *s, const Setting *row, SettingValue v) {
    int  narrow = (int)v.i;
    bool yes = row->kind == SETTING_bool && v.i != 0;
    switch (row->kind) {
    case SETTING_int: memcpy(field(s, row), &narrow, sizeof narrow); break;
    case SETTING_int64: memcpy(field(s, row), &v.i, sizeof v.i); break;
    case SETTING_double: memcpy(field(s, row), &v.d, sizeof v.d); break;
    case SETTING_bool: memcpy(field(s, row), &yes, sizeof yes); break;
    case SETTING_string: memcpy(field(s, row), &v.s, sizeof v.s); break;
    }
}

void settings_default(Settings *s) {
    CHECK(s->n_rows > 0);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        CHECK(setting_in_range(&s->rows[i], s->rows[i].def));
        store(s, &s->rows[i], s->rows[i].def);
    }
}

static const Setting *row_of(const Settings *s, const char *key) {
    for (uint32_t i = 0; i < s->n_rows; i++)
        if (strcmp(s->rows[i].key, key) == 0) return &s->rows[i];
    return NULL;
}

static Err unknown(const Settings *s, const char *where, const char *key) {
    const char *names[256] = {0};
    char        list[400] = "";
    size_t      n = s->n_rows < 256 ? s->n_rows : 256, used = 0;
    for (size_t i = 0; i < n; i++) names[i] = s->rows[i].key;
    const char *meant = text_nearest(key, names, n);
    if (meant != NULL)
        return err_set(ERR_CONFIG, "%s: there is no setting %.100s; did you mean %s?", where, key,
                       meant);
    for (size_t i = 0; i < n && used + strlen(names[i]) + 3 < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    return err_set(ERR_CONFIG, "%s: there is no setting %.100s; there are %s", where, key, list);
}

static Err convert(const Setting *row, const char *where, const char *text, SettingValue *out) {
    Err e = setting_parse(row, text, out);
    return e == ERR_OK ? e : err_add(e, "%s: %s", where, row->key);
}

static Err keep(const Settings *s, const Setting *row, SettingValue *v) {
    if (row->kind != SETTING_string) return ERR_OK;
    size_t n = strlen(v->s) + 1;
    char  *copy = arena_try_new(s->arena, char, n);
    if (copy == NULL) return err_set(ERR_LIMIT, "no memory for the setting %s", row->key);
    v->s = memcpy(copy, v->s, n);
    return ERR_OK;
}

// A schema that reads every value as text, so that files and key=value share one parser.
static cyaml_schema_field_t *text_schema(const Settings *s, Arena *a) {
    cyaml_schema_field_t *f = arena_new(a, cyaml_schema_field_t, s->n_rows + 1);
    for (uint32_t i = 0; i < s->n_rows; i++)
        f[i] = (cyaml_schema_field_t){
            .key = s->rows[i].key,
            .data_offset = (uint32_t)(i * sizeof(char *)),
            .value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char, 0,
                                         CYAML_UNLIMITED)}};
    return f;
}

// Checked before libcyaml runs, which does not report the line of an unknown key.
static Err check_keys(const Settings *s, const char *name, const YamlDocKey *keys, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char where[512];
        (void)snprintf(where, sizeof where, "%s:%zu", name, keys[i].line);
        if (row_of(s, keys[i].key) == NULL) return unknown(s, where, keys[i].key);
        if (!keys[i].scalar)
            return err_set(ERR_CONFIG, "%s: %s takes one value, not a list or a mapping", where,
                           keys[i].key);
    }
    return ERR_OK;
}

static Err take_texts(const Settings *s, const char *name, const YamlDocKey *keys, size_t n,
                      char *const *texts, SettingValue *values) {
    for (size_t i = 0; i < n; i++) {
        char           where[512];
        const Setting *row = row_of(s, keys[i].key);
        SettingValue  *v = &values[row - s->rows];
        const char    *text = texts[row - s->rows];
        (void)snprintf(where, sizeof where, "%s:%zu", name, keys[i].line);
        TRY(convert(row, where, text != NULL ? text : "", v));
        TRY(keep(s, row, v));
    }
    return ERR_OK;
}

static Err parse_with(const Settings *s, const char *name, const char *text, size_t len, Arena *a) {
    YamlDocKey          *keys;
    size_t               n;
    void                *texts = NULL;
    SettingValue        *values = arena_new(a, SettingValue, s->n_rows);
    cyaml_schema_value_t schema = {.type = CYAML_MAPPING,
                                   .flags = CYAML_FLAG_POINTER,
                                   .data_size = (uint32_t)(s->n_rows * sizeof(char *)),
                                   .mapping = {.fields = text_schema(s, a)}};
    TRY(yamldoc_keys(name, text, len, a, &keys, &n));
    TRY(check_keys(s, name, keys, n));
    if (n == 0) return ERR_OK;
    TRY(yamldoc_load(name, text, len, &schema, &texts));
    Err e = take_texts(s, name, keys, n, texts, values);
    yamldoc_free(&schema, texts);
    for (size_t i = 0; e == ERR_OK && i < n; i++) {
        const Setting *row = row_of(s, keys[i].key);
        store(s, row, values[row - s->rows]);
    }
    return e;
}

Err settings_parse(Settings *s, const char *name, const char *text, size_t len) {
    if (len > FILE_MAX) return err_set(ERR_LIMIT, "%s: larger than %d bytes", name, FILE_MAX);
    Arena scratch;
    TRY(arena_init(&scratch, SCRATCH_BYTES));
    Err e = parse_with(s, name, text, len, &scratch);
    arena_finish(&scratch);
    return e;
}

static Err parse_file(void *ctx, const char *path, char *text, size_t len) {
    return settings_parse(ctx, path, text, len);
}

Err settings_load(Settings *s, const char *path) {
    return file_visit(path, FILE_MAX, parse_file, s);
}

Err settings_put(Settings *s, const char *where, const char *key, const char *value,
                 uint32_t *row) {
    const Setting *r = row_of(s, key);
    SettingValue   v;
    if (r == NULL) return unknown(s, where, key);
    TRY(convert(r, where, value, &v));
    TRY(keep(s, r, &v));
    store(s, r, v);
    if (row != NULL) *row = (uint32_t)(r - s->rows);
    return ERR_OK;
}

Err settings_set(Settings *s, const char *assignment) {
    const char *equals = strchr(assignment, '=');
    char        key[128];
    if (equals == NULL || equals == assignment || (size_t)(equals - assignment) >= sizeof key)
        return err_set(ERR_CONFIG, "'%.100s' is not a setting; write key=value", assignment);
    memcpy(key, assignment, (size_t)(equals - assignment));
    key[equals - assignment] = '\0';
    return settings_put(s, "command line", key, equals + 1, NULL);
}

void settings_table(const Settings *s, Table *out) {
    static const Column cols[] = {
        {.key = "key", .head = "Setting"},
        {.key = "value", .head = "Value", .align = ALIGN_RIGHT},
        {.key = "default", .head = "Default", .align = ALIGN_RIGHT},
        {.key = "range", .head = "Range"},
        {.key = "about", .head = "Meaning"},
    };
    table_init(out, s->arena, cols, 5);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const Setting *row = &s->rows[i];
        char           text[96];
        table_row(out);
        table_text(out, row->key);
        table_text(out, setting_text(row, setting_read(row, s->values), text, sizeof text));
        table_text(out, setting_text(row, row->def, text, sizeof text));
        setting_range_text(row, text, sizeof text);
        table_text(out, text);
        table_text(out, row->about);
    }
}
