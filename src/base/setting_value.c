#include "base/setting_value.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/setting_unit.h"
#include "base/utf8.h"

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
    *out = strtoll(text, NULL, 10);  // what does not fit becomes the limit, which errno tells
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
            return err_set(ERR_CONFIG, "'%.100s' is neither true nor false; write one of them",
                           text);
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
