// LabelSelector: which labels match: LabelSelectors and node selector terms of Kubernetes objects,
// and the text form of command lines.
//
// Keys and values are words of one KubeWords: matching compares addresses.
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "kube/kube_memory.h"

typedef struct Label {
    const KubeWord *key, *value;
} Label;

typedef struct Labels {
    const Label *at;
    uint32_t     n;
} Labels;

typedef enum LabelOperator {
    LABEL_IN,
    LABEL_NOT_IN,
    LABEL_EXISTS,
    LABEL_ABSENT,
    LABEL_GREATER,
    LABEL_LESS
} LabelOperator;

typedef struct LabelRule {
    const KubeWord        *key;
    const KubeWord *const *values;  // [n]
    uint32_t               n;
    LabelOperator          op;
    int64_t                bound;  // of LABEL_GREATER and LABEL_LESS
} LabelRule;

typedef struct LabelSelector {  // all rules must hold; without rules everything matches
    const LabelRule *rules;
    uint32_t         n;
    bool             nothing;  // matches nothing: what an absent selector does
} LabelSelector;

typedef struct NodeTerm {
    LabelSelector labels, fields;
    int32_t       weight;  // of a preferred term
} NodeTerm;

typedef struct NodeTerms {  // any of them must match; given and none: nothing matches
    const NodeTerm *at;
    uint32_t        n;
    bool            given;
} NodeTerms;

// The value of a key, NULL without.
const KubeWord *labels_find(Labels l, const KubeWord *key);
bool            label_selector_matches(const LabelSelector *s, Labels l);
bool            node_term_matches(const NodeTerm *t, Labels l, const KubeWord *name);
bool            node_terms_match(const NodeTerms *t, Labels l, const KubeWord *name);

// From JSON; NULL and null: no labels, a selector that matches nothing, terms that are not given.
MUST_USE Err labels_read(const json_t *object, KubeMemory *m, Labels *out);
MUST_USE Err label_selector_read(const json_t *object, KubeMemory *m, LabelSelector *out);
MUST_USE Err node_term_read(const json_t *object, KubeMemory *m, NodeTerm *out);
MUST_USE Err node_terms_read(const json_t *array, KubeMemory *m, NodeTerms *out);

// "a=b,c==d,e!=f,g in (x,y),h notin (z),i,!j,k>1,l<2".
MUST_USE Err label_selector_parse(const char *text, KubeMemory *m, LabelSelector *out);

// The selector and one more rule.
LabelSelector label_selector_with(const LabelSelector *s, KubeMemory *m, const KubeWord *key,
                                  LabelOperator op, const KubeWord *value);
