#include "kube/label_selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/label_selector_int.h"

const KubeWord *labels_find(Labels l, const KubeWord *key) {
    for (uint32_t i = 0; i < l.n; i++)
        if (l.at[i].key == key) return l.at[i].value;
    return NULL;
}

bool label_number(const char *text, int64_t *out) {
    char *end = NULL;
    if (*text == '\0' || strspn(text, "+-0123456789") != strlen(text)) return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool one_of(const LabelRule *r, const KubeWord *value) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->values[i] == value) return true;
    return false;
}

static bool rule_matches(const LabelRule *r, Labels l) {
    const KubeWord *value = labels_find(l, r->key);
    int64_t         number;
    switch (r->op) {
    case LABEL_IN: return value != NULL && one_of(r, value);
    case LABEL_NOT_IN: return value == NULL || !one_of(r, value);
    case LABEL_EXISTS: return value != NULL;
    case LABEL_ABSENT: return value == NULL;
    case LABEL_GREATER:
        return value != NULL && label_number(value->text, &number) && number > r->bound;
    case LABEL_LESS:
        return value != NULL && label_number(value->text, &number) && number < r->bound;
    }
    return false;
}

bool label_selector_matches(const LabelSelector *s, Labels l) {
    if (s->nothing) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!rule_matches(&s->rules[i], l)) return false;
    return true;
}

bool node_term_matches(const NodeTerm *t, Labels l, const KubeWord *name) {
    if (t->labels.nothing || t->labels.n + t->fields.n == 0) return false;
    if (!label_selector_matches(&t->labels, l)) return false;
    for (uint32_t i = 0; i < t->fields.n; i++) {
        Label field = {t->fields.rules[i].key, name};
        if (!rule_matches(&t->fields.rules[i], (Labels){&field, 1})) return false;
    }
    return true;
}

bool node_terms_match(const NodeTerms *t, Labels l, const KubeWord *name) {
    if (!t->given) return true;
    for (uint32_t i = 0; i < t->n; i++)
        if (node_term_matches(&t->at[i], l, name)) return true;
    return false;
}

Err labels_read(const json_t *object, KubeMemory *m, Labels *out) {
    const char *key;
    json_t     *value;
    uint32_t    n = 0;
    *out = (Labels){0};
    if (object == NULL || json_is_null(object)) return ERR_OK;
    if (!json_is_object(object)) return err_set(ERR_PARSE, "labels are not an object");
    Label *at = kube_memory_new(m, Label, json_object_size(object));
    json_object_foreach((json_t *)object, key, value) {
        if (!json_is_string(value)) return err_set(ERR_PARSE, "label %.80s is not a string", key);
        at[n++] = (Label){kube_memory_word(m, key), kube_memory_word(m, json_string_value(value))};
    }
    *out = (Labels){at, n};
    return ERR_OK;
}

static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};

static Err read_operator(const char *text, const char *key, LabelOperator *out) {
    for (size_t i = 0; text != NULL && i < sizeof operators / sizeof *operators; i++)
        if (strcmp(text, operators[i]) == 0) {
            *out = (LabelOperator)i;
            return ERR_OK;
        }
    return err_set(ERR_UNSUPPORTED, "key %.80s: operator '%.40s' is not supported", key,
                   text != NULL ? text : "");
}

Err label_rule_check(LabelRule *r) {
    bool bounded = r->op == LABEL_GREATER || r->op == LABEL_LESS;
    if (bounded && (r->n != 1 || !label_number(r->values[0]->text, &r->bound)))
        return err_set(ERR_PARSE, "key %.80s: Gt and Lt need one integer", r->key->text);
    if ((r->op == LABEL_IN || r->op == LABEL_NOT_IN) && r->n == 0)
        return err_set(ERR_PARSE, "key %.80s: In and NotIn need values", r->key->text);
    if ((r->op == LABEL_EXISTS || r->op == LABEL_ABSENT) && r->n != 0)
        return err_set(ERR_PARSE, "key %.80s: Exists and DoesNotExist have no values",
                       r->key->text);
    return ERR_OK;
}

static Err read_rule(const json_t *o, KubeMemory *m, LabelRule *r) {
    const char   *key = json_string_value(json_object_get(o, "key"));
    const json_t *values = json_object_get(o, "values");
    if (key == NULL) return err_set(ERR_PARSE, "an expression has no key");
    *r = (LabelRule){.key = kube_memory_word(m, key)};
    TRY(read_operator(json_string_value(json_object_get(o, "operator")), key, &r->op));
    const KubeWord **list = kube_memory_new(m, const KubeWord *, json_array_size(values));
    for (; r->n < json_array_size(values); r->n++) {
        const char *value = json_string_value(json_array_get(values, r->n));
        if (value == NULL) return err_set(ERR_PARSE, "key %.80s: a value is no string", key);
        list[r->n] = kube_memory_word(m, value);
    }
    r->values = list;
    return label_rule_check(r);
}

static Err read_rules(const json_t *array, KubeMemory *m, LabelRule *out, uint32_t *n) {
    if (array != NULL && !json_is_array(array) && !json_is_null(array))
        return err_set(ERR_PARSE, "expressions are not an array");
    for (size_t i = 0; i < json_array_size(array); i++, ++*n)
        TRY(read_rule(json_array_get(array, i), m, &out[*n]));
    return ERR_OK;
}

static Err known_members(const json_t *o, const char *const *known) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)o, key, value) {
        const char *const *k = known;
        while (*k != NULL && strcmp(*k, key) != 0) k++;
        if (*k == NULL)
            return err_set(ERR_UNSUPPORTED, "field %.80s of a selector is not supported", key);
    }
    return ERR_OK;
}

Err label_selector_read(const json_t *o, KubeMemory *m, LabelSelector *out) {
    static const char *const known[] = {"matchLabels", "matchExpressions", NULL};
    Labels                   equal;
    *out = (LabelSelector){.nothing = true};
    if (o == NULL || json_is_null(o)) return ERR_OK;
    if (!json_is_object(o)) return err_set(ERR_PARSE, "a label selector is not an object");
    TRY(known_members(o, known));
    TRY(labels_read(json_object_get(o, "matchLabels"), m, &equal));
    const json_t *more = json_object_get(o, "matchExpressions");
    LabelRule    *rules = kube_memory_new(m, LabelRule, equal.n + json_array_size(more));
    uint32_t      n = 0;
    for (; n < equal.n; n++)
        rules[n] = (LabelRule){.key = equal.at[n].key, .values = &equal.at[n].value, .n = 1};
    TRY(read_rules(more, m, rules, &n));
    *out = (LabelSelector){rules, n, false};
    return ERR_OK;
}

static Err read_fields(const json_t *array, KubeMemory *m, LabelSelector *out) {
    LabelRule *rules = kube_memory_new(m, LabelRule, json_array_size(array));
    TRY(read_rules(array, m, rules, &out->n));
    for (uint32_t i = 0; i < out->n; i++)
        if (strcmp(rules[i].key->text, "metadata.name") != 0 || rules[i].op > LABEL_NOT_IN)
            return err_set(ERR_UNSUPPORTED,
                           "matchFields: only metadata.name with In or NotIn is supported");
    out->rules = rules;
    return ERR_OK;
}

Err node_term_read(const json_t *o, KubeMemory *m, NodeTerm *out) {
    static const char *const known[] = {"matchExpressions", "matchFields", NULL};
    if (!json_is_object(o)) return err_set(ERR_PARSE, "a node selector term is not an object");
    TRY(known_members(o, known));
    const json_t *labels = json_object_get(o, "matchExpressions");
    LabelRule    *rules = kube_memory_new(m, LabelRule, json_array_size(labels));
    NodeTerm      t = {.labels.rules = rules};
    TRY(read_rules(labels, m, rules, &t.labels.n));
    TRY(read_fields(json_object_get(o, "matchFields"), m, &t.fields));
    *out = t;
    return ERR_OK;
}

Err node_terms_read(const json_t *array, KubeMemory *m, NodeTerms *out) {
    *out = (NodeTerms){0};
    if (array == NULL || json_is_null(array)) return ERR_OK;
    if (!json_is_array(array)) return err_set(ERR_PARSE, "nodeSelectorTerms is not an array");
    uint32_t  n = (uint32_t)json_array_size(array);
    NodeTerm *at = kube_memory_new(m, NodeTerm, n);
    for (uint32_t i = 0; i < n; i++) TRY(node_term_read(json_array_get(array, i), m, &at[i]));
    *out = (NodeTerms){at, n, true};
    return ERR_OK;
}

LabelSelector label_selector_with(const LabelSelector *s, KubeMemory *m, const KubeWord *key,
                                  LabelOperator op, const KubeWord *value) {
    LabelRule       *rules = kube_memory_new(m, LabelRule, s->n + 1);
    const KubeWord **values = kube_memory_new(m, const KubeWord *, 1);
    if (s->n > 0) memcpy(rules, s->rules, s->n * sizeof *rules);
    values[0] = value;
    rules[s->n] = (LabelRule){.key = key, .values = values, .n = 1, .op = op};
    return (LabelSelector){rules, s->n + 1, s->nothing};
}
