// Parses cotenant.yaml by its YAML events: sections, models and their settings, with line numbers.
#include <string.h>

#include "base/text.h"
#include "base/yamldoc.h"
#include "serve/config/config_int.h"

enum { LINES_MOST = 1 << 17, DEPTH_MOST = 4 };

typedef enum Frame { IN_TOP, IN_DEFAULTS, IN_MODEL, IN_MODEL_MAP, IN_MODEL_LIST, IN_SOURCES } Frame;

typedef struct Level {
    Frame       frame;
    const char *key;  // of a mapping: its value comes next; NULL: a key comes next
    size_t      line;
} Level;

typedef struct Walk {
    const char *name;
    Arena      *arena;
    ConfigFile *out;
    Level       levels[DEPTH_MOST];
    uint32_t    depth, room;
    size_t      seen[3];  // line of models, defaults, sources; 0: not yet
} Walk;

static Err add(Walk *w, ConfigPart part, const char *key, const char *text, size_t line) {
    ConfigFile *f = w->out;
    if (f->n_lines == LINES_MOST)
        return err_set(ERR_CONFIG, "%s:%zu: more than %d values; make the file smaller", w->name,
                       line, LINES_MOST);
    if (f->n_lines == w->room) {
        uint32_t    room = w->room > 0 ? 2 * w->room : 64;
        ConfigLine *more = arena_try_new(w->arena, ConfigLine, room);
        if (more == NULL) return err_set(ERR_LIMIT, "%s:%zu: out of memory", w->name, line);
        if (f->n_lines > 0) memcpy(more, f->lines, f->n_lines * sizeof *more);
        f->lines = more;
        w->room = room;
    }
    f->lines[f->n_lines++] =
        (ConfigLine){part, f->n_items - (part == PART_MODELS), line, key, text};
    return ERR_OK;
}

static Err copy(Walk *w, const yaml_event_t *e, const char **out) {
    const char *text = (const char *)e->data.scalar.value;
    size_t      len = e->data.scalar.length, line = e->start_mark.line + 1;
    if (memchr(text, '\0', len) != NULL)
        return err_set(ERR_CONFIG, "%s:%zu: NUL byte in the text; remove it", w->name, line);
    char *s = arena_try_new(w->arena, char, len + 1);
    if (s == NULL) return err_set(ERR_LIMIT, "%s:%zu: out of memory", w->name, line);
    memcpy(s, text, len);
    *out = s;
    return ERR_OK;
}

// Each section may occur once.
static Err once(Walk *w, uint32_t section, const Level *l) {
    if (w->seen[section] > 0)
        return err_set(ERR_CONFIG, "%s:%zu: %s is already set in line %zu; keep one of them",
                       w->name, l->line, l->key, w->seen[section]);
    w->seen[section] = l->line;
    return ERR_OK;
}

enum { SECTIONS = 3 };
static const char *const sections[SECTIONS] = {"models", "defaults", "sources"};

static Err unknown_section(const Walk *w, const Level *l) {
    char hint[TEXT_MEANT];
    return err_set(
        ERR_CONFIG, "%s:%zu: there is no section %.100s; %s", w->name, l->line, l->key,
        text_meant(l->key, sections, SECTIONS,
                   "lists and mappings stand under models:, defaults: and sources:", hint));
}

static Err section_of(Walk *w, const Level *l, uint32_t *out) {
    *out = SECTIONS;
    for (uint32_t i = 0; i < SECTIONS; i++)
        if (strcmp(sections[i], l->key) == 0) {
            *out = i;
            return once(w, i, l);
        }
    return ERR_OK;
}

static Err new_item(Walk *w, const char *key, const char *text, size_t line) {
    w->out->n_items++;
    return text != NULL && text[0] != '\0' ? add(w, PART_MODELS, key, text, line) : ERR_OK;
}

static Err top_value(Walk *w, const Level *l, const char *text) {
    uint32_t section = 3;
    TRY(section_of(w, l, &section));
    if (section == 3) return add(w, PART_TOP, l->key, text, l->line);
    if (text[0] == '\0') return ERR_OK;
    if (section == 2) return add(w, PART_SOURCES, "sources", text, l->line);
    return err_set(ERR_CONFIG, "%s:%zu: %s takes %s, not one value", w->name, l->line, l->key,
                   section == 0 ? "a list of models" : "\"key: value\" lines");
}

static Err value(Walk *w, const Level *l, const char *text, size_t line) {
    switch (l->frame) {
    case IN_TOP: return top_value(w, l, text);
    case IN_DEFAULTS: return add(w, PART_DEFAULTS, l->key, text, l->line);
    case IN_MODEL: return add(w, PART_MODELS, l->key, text, l->line);
    case IN_MODEL_MAP:
        TRY(new_item(w, "name", l->key, l->line));
        return text[0] != '\0' ? add(w, PART_MODELS, "path", text, l->line) : ERR_OK;
    case IN_MODEL_LIST: return new_item(w, "path", text, line);
    case IN_SOURCES: return add(w, PART_SOURCES, "sources", text, line);
    }
    return ERR_OK;
}

static bool is_list(Frame f) { return f == IN_MODEL_LIST || f == IN_SOURCES; }

static Err scalar(Walk *w, const yaml_event_t *e) {
    size_t      line = e->start_mark.line + 1;
    const char *text = NULL;
    if (w->depth == 0)
        return err_set(ERR_CONFIG, "%s:%zu: write \"key: value\" lines here", w->name, line);
    Level *l = &w->levels[w->depth - 1];
    TRY(copy(w, e, &text));
    if (is_list(l->frame)) return value(w, l, text, line);
    if (l->key == NULL) {
        l->key = text;
        l->line = line;
        return ERR_OK;
    }
    Err err = value(w, l, text, line);
    l->key = NULL;
    return err;
}

static Err frame_in_top(Walk *w, const Level *l, bool list, Frame *out) {
    uint32_t section = 3;
    TRY(section_of(w, l, &section));
    if (section == 0) *out = list ? IN_MODEL_LIST : IN_MODEL_MAP;
    if (section == 1 && !list) *out = IN_DEFAULTS;
    if (section == 2 && list) *out = IN_SOURCES;
    if (section == 0 || (section == 1 && !list) || (section == 2 && list)) return ERR_OK;
    if (section == SECTIONS && !config_is_serve(l->key)) return unknown_section(w, l);
    return err_set(ERR_CONFIG, "%s:%zu: %s takes %s", w->name, l->line, l->key,
                   section == 1   ? "\"key: value\" lines, not a list"
                   : section == 2 ? "a list of folders and files, not a mapping"
                                  : "one value, not a list or a mapping");
}

static Err enter(Walk *w, const yaml_event_t *e, bool list) {
    size_t line = e->start_mark.line + 1;
    Frame  frame = IN_TOP;
    Level *l = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    if (l == NULL && list)
        return err_set(ERR_CONFIG, "%s:%zu: write \"key: value\" lines here", w->name, line);
    if (l != NULL && !is_list(l->frame) && l->key == NULL)
        return err_set(ERR_CONFIG, "%s:%zu: a key must be a plain word", w->name, line);
    if (l != NULL && l->frame == IN_TOP) {
        TRY(frame_in_top(w, l, list, &frame));
    } else if (l != NULL && !list && l->frame == IN_MODEL_LIST) {
        frame = IN_MODEL;
        TRY(new_item(w, NULL, NULL, line));
    } else if (l != NULL && !list && l->frame == IN_MODEL_MAP) {
        frame = IN_MODEL;
        TRY(new_item(w, "name", l->key, l->line));
    } else if (l != NULL) {
        return err_set(ERR_CONFIG, "%s:%zu: %s takes one value, not a list or a mapping", w->name,
                       line, l->key != NULL ? l->key : "an entry here");
    }
    w->levels[w->depth++] = (Level){.frame = frame};
    return ERR_OK;
}

static Err leave(Walk *w) {
    w->depth--;
    if (w->depth > 0) w->levels[w->depth - 1].key = NULL;
    return ERR_OK;
}

static Err visit(void *ctx, const yaml_event_t *e, size_t line) {
    Walk *w = ctx;
    (void)line;
    switch (e->type) {
    case YAML_MAPPING_START_EVENT: return enter(w, e, false);
    case YAML_SEQUENCE_START_EVENT: return enter(w, e, true);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return leave(w);
    default: return scalar(w, e);
    }
}

Err config_parse_yaml(const char *path, const char *text, size_t len, Arena *a, ConfigFile *out) {
    Walk w = {.name = path, .arena = a, .out = out};
    *out = (ConfigFile){.path = path};
    return yamldoc_walk(path, text, len, visit, &w);
}
