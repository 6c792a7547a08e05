#include "chip/chip_file.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "base/yamldoc.h"

enum { FILE_MOST = 1 << 16, NAMES_MAX = 64 };

static char plain(char c) { return c == '-' ? '_' : (char)tolower((unsigned char)c); }

bool chip_file_same(const char *a, const char *b) {
    for (; *a != '\0' && plain(*a) == plain(*b); a++) b++;
    return *a == '\0' && *b == '\0';
}

// Packages have a key `units`.
static bool is_package(const ChipFile *f) { return strstr(f->text, "\nunits:") != NULL; }

const char *chip_file_name(bool package, uint32_t i) {
    for (const ChipFile *f = chip_files; f->name != NULL; f++)
        if (is_package(f) == package && i-- == 0) return f->name;
    return NULL;
}

static Err unknown(bool package, const char *what, Arena *a) {
    const char *names[NAMES_MAX];
    char       *list = arena_str(a, "");
    uint32_t    n = 0;
    for (; n < NAMES_MAX && chip_file_name(package, n) != NULL; n++) {
        names[n] = chip_file_name(package, n);
        list = arena_printf(a, "%s%s%s", list, n > 0 ? ", " : "", names[n]);
    }
    const char *meant = text_nearest(what, names, n);
    return err_set(ERR_ARG, "no %s '%.60s'; %s%s%sgive one of %s, or the path of a YAML file",
                   package ? "package" : "unit", what, meant != NULL ? "did you mean " : "",
                   meant != NULL ? meant : "", meant != NULL ? "? Or " : "", list);
}

static const char *place(const char *what, const char *beside, Arena *a) {
    const char *slash = beside != NULL && what[0] != '/' ? strrchr(beside, '/') : NULL;
    return slash == NULL ? what : arena_printf(a, "%.*s/%s", (int)(slash - beside), beside, what);
}

Err chip_file_find(bool package, const char *what, const char *beside, Arena *a, const char **name,
                   const char **text, size_t *len) {
    size_t n = strlen(what);
    char  *read = NULL;
    for (const ChipFile *f = chip_files; f->name != NULL; f++)
        if (is_package(f) == package && chip_file_same(f->name, what)) {
            *name = f->name;
            *text = f->text;
            *len = strlen(f->text);
            return ERR_OK;
        }
    if (strchr(what, '/') == NULL && (n < 6 || strcmp(what + n - 5, ".yaml") != 0))
        return unknown(package, what, a);
    *name = place(what, beside, a);
    TRY(file_read(*name, FILE_MOST, a, &read, len));
    *text = read;
    return ERR_OK;
}

static bool among(const char *key, const char *const *keys) {
    for (; *keys != NULL; keys++)
        if (strcmp(*keys, key) == 0) return true;
    return false;
}

static Err check_complete(const char *name, const char *text, size_t len, const Settings *s,
                          const char *const *optional) {
    YamlDocKey *keys = NULL;
    size_t      n = 0, mark = s->arena->used;
    TRY(yamldoc_keys(name, text, len, s->arena, &keys, &n));
    for (uint32_t i = 0; i < s->n_rows; i++) {
        bool found = among(s->rows[i].key, optional);
        for (size_t k = 0; k < n && !found; k++) found = strcmp(keys[k].key, s->rows[i].key) == 0;
        if (!found)
            return err_set(ERR_CONFIG, "%s:%zu: key '%s' is missing (%s)", name,
                           n > 0 ? keys[n - 1].line : 1, s->rows[i].key, s->rows[i].about);
    }
    arena_rewind(s->arena, mark);
    return ERR_OK;
}

Err chip_file_parse(const char *name, const char *text, size_t len, Settings *s,
                    const char *const *optional) {
    settings_default(s);
    TRY(check_complete(name, text, len, s, optional));
    return settings_parse(s, name, text, len);
}
