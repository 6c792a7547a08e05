// Feeds text to the readers of label selectors, as text or, if it begins with a bracket, as JSON.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/label_selector.h"
#include "tests/fuzz/fuzz.h"

static void match(const LabelSelector *s, const NodeTerms *t, KubeMemory *m) {
    Label  pair[2] = {{kube_memory_word(m, "a"), kube_memory_word(m, "b")},
                      {kube_memory_word(m, "n"), kube_memory_word(m, "7")}};
    Labels l = {pair, 2};
    if (s != NULL) {
        LabelSelector more = label_selector_with(s, m, pair[0].key, LABEL_NOT_IN, pair[0].value);
        if (label_selector_matches(&more, l)) abort();
        (void)label_selector_matches(s, l);
    }
    if (t != NULL) (void)node_terms_match(t, l, pair[0].value);
}

FUZZ_TARGET(data, size) {
    char          text[5000] = "";
    KubeWords     words;
    KubeMemory    m;
    LabelSelector s;
    NodeTerms     t;
    json_t       *o = NULL;
    kube_words_init(&words);
    kube_memory_init(&m, &words);
    memcpy(text, data, size < sizeof text - 1 ? size : sizeof text - 1);
    if (json_parse("selector", text, strlen(text), &o) == ERR_OK) {
        if (label_selector_read(o, &m, &s) == ERR_OK) match(&s, NULL, &m);
        if (node_terms_read(o, &m, &t) == ERR_OK) match(NULL, &t, &m);
        json_decref(o);
    } else if (label_selector_parse(text, &m, &s) == ERR_OK) {
        match(&s, NULL, &m);
    }
    kube_memory_finish(&m);
    if (words.n != 0) abort();
    kube_words_finish(&words);
    return 0;
}
