#include "serve/models/pbtxt_text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void pbtxt_text_init(PbtxtText *t, const char *name, const char *text, size_t len, Arena *a) {
    *t = (PbtxtText){.name = name, .text = text, .len = len, .line = 1, .column = 1, .arena = a};
}

// '\0' at the end; a NUL byte within the text is invalid everywhere, too.
static char peek(const PbtxtText *t) { return t->at < t->len ? t->text[t->at] : '\0'; }

static void step(PbtxtText *t) {
    if (t->text[t->at++] == '\n') {
        t->line++;
        t->column = 1;
    } else {
        t->column++;
    }
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_space(PbtxtText *t) {
    for (bool comment = false; t->at < t->len; step(t)) {
        char c = peek(t);
        if (c == '#') comment = true;
        if (c == '\n') comment = false;
        if (!comment && !is_space(c)) return;
    }
}

static Err unexpected(const PbtxtText *t, const char *wanted) {
    char          seen[16];
    unsigned char c = (unsigned char)peek(t);
    if (t->at >= t->len)
        return err_set(ERR_CONFIG, "%s:%u:%u: unexpected end of file; expected %s", t->name,
                       t->line, t->column, wanted);
    (void)snprintf(seen, sizeof seen, c > 32 && c < 127 ? "'%c'" : "byte %u", c);
    return err_set(ERR_CONFIG, "%s:%u:%u: found %s; expected %s", t->name, t->line, t->column, seen,
                   wanted);
}

static Err no_memory(const PbtxtText *t) {
    return err_set(ERR_LIMIT, "%s:%u:%u: out of memory", t->name, t->line, t->column);
}

static Err take_run(PbtxtText *t, bool number, const char **out) {
    size_t from = t->at;
    for (; t->at < t->len; step(t)) {
        char c = peek(t);
        bool sign = (c == '-' || c == '+') &&
                    (t->at == from || t->text[t->at - 1] == 'e' || t->text[t->at - 1] == 'E');
        if (!is_letter(c) && !is_digit(c) && !(number && (c == '.' || sign))) break;
    }
    char *s = arena_try_new(t->arena, char, t->at - from + 1);
    if (s == NULL) return no_memory(t);
    memcpy(s, t->text + from, t->at - from);
    *out = s;
    return ERR_OK;
}

static int hex(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// After the backslash.
static Err take_escape(PbtxtText *t, char *out) {
    static const char letters[] = "nrtabfv\\'\"?", bytes[] = "\n\r\t\a\b\f\v\\'\"?";
    char              c = peek(t);
    const char       *at = c != '\0' ? strchr(letters, c) : NULL;
    int               value = 0, base = c == 'x' ? 16 : 8, digits = 0;
    if (at != NULL) {
        *out = bytes[at - letters];
        step(t);
        return ERR_OK;
    }
    if (c == 'x') step(t);
    for (int d; digits < (base == 16 ? 2 : 3) && (d = hex(peek(t))) >= 0 && d < base; digits++) {
        value = value * base + d;
        step(t);
    }
    if (digits == 0 || value == 0 || value > 255)
        return unexpected(t, "one of \\n \\t \\\\ \\\" \\' \\xHH after a backslash, not NUL");
    *out = (char)(unsigned char)value;
    return ERR_OK;
}

// Length up to the closing quote, escapes included: an upper bound of the decoded length.
static size_t quoted_length(const PbtxtText *t) {
    char   quote = t->text[t->at];
    size_t n = t->at + 1;
    for (; n < t->len && t->text[n] != quote && t->text[n] != '\n'; n++)
        if (t->text[n] == '\\' && n + 1 < t->len) n++;
    return n - t->at;
}

static Err take_quoted(PbtxtText *t, char *out, size_t *n) {
    char quote = peek(t);
    for (step(t); t->at >= t->len || peek(t) != quote;) {
        char c = peek(t);
        if (t->at >= t->len || c == '\n' || c == '\0') return unexpected(t, "the closing quote");
        step(t);
        if (c == '\\') TRY(take_escape(t, &c));
        out[(*n)++] = c;
    }
    step(t);
    return ERR_OK;
}

// Adjacent strings are joined: they are decoded one after the other at the end of the arena.
static Err take_string(PbtxtText *t, PbtxtField *out) {
    char  *s = t->arena->base + t->arena->used;
    size_t mark = t->arena->used, n = 0;
    for (; peek(t) == '"' || peek(t) == '\''; skip_space(t)) {
        if (arena_try_new(t->arena, char, quoted_length(t)) == NULL) return no_memory(t);
        TRY(take_quoted(t, s, &n));
        arena_rewind(t->arena, mark + n);
    }
    if (!utf8_ok(s, n))
        return err_set(ERR_CONFIG, "%s:%u:%u: string is not UTF-8", t->name, out->line,
                       out->column);
    if (arena_try_new(t->arena, char, 1) == NULL) return no_memory(t);
    out->value = s;
    return ERR_OK;
}

static Err take_value(PbtxtText *t, PbtxtField *out) {
    char c = peek(t);
    out->event = PBTXT_VALUE;
    out->line = t->line;
    out->column = t->column;
    out->kind = c == '"' || c == '\'' ? PBTXT_STRING : is_letter(c) ? PBTXT_WORD : PBTXT_NUMBER;
    if (out->kind == PBTXT_STRING) return take_string(t, out);
    if (!is_letter(c) && !is_digit(c) && c != '-' && c != '.')
        return unexpected(t, "a number, a word or a quoted string");
    return take_run(t, out->kind == PBTXT_NUMBER, &out->value);
}

static Err open_message(PbtxtText *t, PbtxtField *out) {
    if (t->depth + 1 == PBTXT_DEPTH)
        return err_set(ERR_CONFIG, "%s:%u:%u: nested deeper than %d", t->name, t->line, t->column,
                       PBTXT_DEPTH);
    t->levels[++t->depth] =
        (PbtxtLevel){.close = (char)(peek(t) == '{' ? '}' : '>'), .line = t->line};
    out->event = PBTXT_OPEN;
    step(t);
    return ERR_OK;
}

static void skip_separator(PbtxtText *t) {
    skip_space(t);
    if (peek(t) == ',' || peek(t) == ';') step(t);
}

// *done: an element was read; otherwise the list has ended.
static Err list_next(PbtxtText *t, PbtxtField *out, bool *done) {
    PbtxtLevel *l = &t->levels[t->depth];
    char        c = peek(t);
    *done = false;
    if (c == ']') {
        l->list = NULL;
        step(t);
        skip_separator(t);
        return ERR_OK;
    }
    if (l->comma) {
        if (c != ',') return unexpected(t, "',' or ']'");
        step(t);
        skip_space(t);
        if (peek(t) == ']') return unexpected(t, "another element after ','");
    }
    l->comma = true;
    *done = true;
    out->name = l->list;
    out->line = t->line;
    out->column = t->column;
    c = peek(t);
    return c == '{' || c == '<' ? open_message(t, out) : take_value(t, out);
}

static Err close_message(PbtxtText *t, PbtxtField *out) {
    out->event = PBTXT_CLOSE;
    t->depth--;
    step(t);
    if (t->levels[t->depth].list == NULL) skip_separator(t);
    return ERR_OK;
}

// *done: a field with its value was read; otherwise a list has begun.
static Err field_next(PbtxtText *t, PbtxtField *out, bool *done) {
    *done = true;
    if (!is_letter(peek(t)))
        return unexpected(t, t->depth > 0 ? "a field's name or '}'" : "a field's name");
    TRY(take_run(t, false, &out->name));
    skip_space(t);
    bool colon = peek(t) == ':';
    if (colon) step(t);
    skip_space(t);
    char c = peek(t);
    if (c == '{' || c == '<') return open_message(t, out);
    if (c == '[') {
        t->levels[t->depth].list = out->name;
        t->levels[t->depth].comma = false;
        *done = false;
        step(t);
        return ERR_OK;
    }
    if (!colon) return unexpected(t, "':' or '{' after a field's name");
    TRY(take_value(t, out));
    skip_separator(t);
    return ERR_OK;
}

Err pbtxt_text_next(PbtxtText *t, PbtxtField *out) {
    for (bool done = false; !done;) {
        skip_space(t);
        PbtxtLevel *l = &t->levels[t->depth];
        *out = (PbtxtField){.line = t->line, .column = t->column};
        if (l->list != NULL) {
            TRY(list_next(t, out, &done));
        } else if (t->at >= t->len && t->depth == 0) {
            return ERR_OK;
        } else if (t->at >= t->len) {
            return err_set(
                ERR_CONFIG,
                "%s:%u:%u: unexpected end of file within the message of line %u; expected '%c'",
                t->name, t->line, t->column, l->line, l->close);
        } else if (t->depth > 0 && peek(t) == l->close) {
            return close_message(t, out);
        } else {
            TRY(field_next(t, out, &done));
        }
    }
    return ERR_OK;
}
