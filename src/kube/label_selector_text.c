// The text form of label selectors: rules between commas.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kube/label_selector_int.h"

enum { TEXT_MOST = 4096, VALUES_MOST = 64, RULES_MOST = 64 };

typedef struct Scan {
    const char *text, *at;
    KubeMemory *memory;
    LabelRule   rules[RULES_MOST];
    uint32_t    n;
} Scan;

static void blanks(Scan *s) {
    while (*s->at == ' ' || *s->at == '\t') s->at++;
}

static bool token(Scan *s, const char *what) {
    size_t len = strlen(what);
    blanks(s);
    if (strncmp(s->at, what, len) != 0) return false;
    s->at += len;
    return true;
}

static Err refused(const Scan *s, const char *why) {
    return err_set(ERR_PARSE, "label selector '%.200s', character %td: %s", s->text,
                   s->at - s->text + 1, why);
}

// A run of the characters of keys (with '/') or values; may be empty.
static const KubeWord *word(Scan *s, const char *more) {
    char   text[320];
    size_t len = 0;
    blanks(s);
    while (isalnum((unsigned char)s->at[len]) ||
           (s->at[len] != '\0' && strchr(more, s->at[len]) != NULL))
        len++;
    if (len >= sizeof text) return NULL;
    memcpy(text, s->at, len);
    text[len] = '\0';
    s->at += len;
    return kube_memory_word(s->memory, text);
}

static Err value(Scan *s, LabelRule *r, const KubeWord **list) {
    if (r->n == VALUES_MOST) return refused(s, "more than 64 values");
    list[r->n] = word(s, "-_.");
    if (list[r->n] == NULL) return refused(s, "a value is too long");
    r->n++;
    return ERR_OK;
}

static Err values(Scan *s, LabelRule *r, bool set) {
    const KubeWord *list[VALUES_MOST];
    if (set && !token(s, "(")) return refused(s, "'(' and values are missing");
    do TRY(value(s, r, list));
    while (set && token(s, ","));
    if (set && !token(s, ")")) return refused(s, "')' is missing");
    const KubeWord **kept = kube_memory_new(s->memory, const KubeWord *, r->n);
    memcpy(kept, list, r->n * sizeof(const KubeWord *));
    r->values = kept;
    return ERR_OK;
}

static Err operation(Scan *s, LabelRule *r) {
    static const struct {
        const char   *text;
        LabelOperator op;
        bool          set;
    } known[] = {{"==", LABEL_IN, false},      {"=", LABEL_IN, false},
                 {"!=", LABEL_NOT_IN, false},  {">", LABEL_GREATER, false},
                 {"<", LABEL_LESS, false},     {"in", LABEL_IN, true},
                 {"notin", LABEL_NOT_IN, true}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (token(s, known[i].text)) {
            r->op = known[i].op;
            return values(s, r, known[i].set);
        }
    r->op = LABEL_EXISTS;
    return ERR_OK;
}

static Err rule(Scan *s, LabelRule *r) {
    bool absent = token(s, "!");
    r->key = word(s, "-_./");
    if (r->key == NULL || r->key->text[0] == '\0')
        return refused(s, "a key is missing or too long");
    r->op = LABEL_ABSENT;
    if (!absent) TRY(operation(s, r));
    return label_rule_check(r);
}

Err label_selector_parse(const char *text, KubeMemory *m, LabelSelector *out) {
    Scan s = {.text = text, .at = text, .memory = m};
    if (strnlen(text, TEXT_MOST) == TEXT_MOST)
        return err_set(ERR_LIMIT, "a label selector has more than %d characters", TEXT_MOST - 1);
    blanks(&s);
    while (*s.at != '\0') {
        if (s.n == RULES_MOST) return refused(&s, "more than 64 rules");
        TRY(rule(&s, &s.rules[s.n]));
        s.n++;
        blanks(&s);
        if (*s.at == '\0') break;
        if (!token(&s, ",")) return refused(&s, "',' is missing between two rules");
        blanks(&s);
        if (*s.at == '\0') return refused(&s, "a rule is missing after ','");
    }
    LabelRule *rules = kube_memory_new(m, LabelRule, s.n);
    memcpy(rules, s.rules, s.n * sizeof *rules);
    *out = (LabelSelector){rules, s.n, false};
    return ERR_OK;
}
