// KubeWords: distinct strings with counted holders: equal strings are the same KubeWord, so that
// labels compare by address.
#pragma once

#include <stdint.h>

typedef struct KubeWord {
    struct KubeWord *next;
    uint32_t         holders, hash;
    char             text[];
} KubeWord;

typedef struct KubeWords {
    KubeWord **slots;  // [cap], a power of 2
    uint32_t   cap, n;
} KubeWords;

uint32_t        kube_hash(const char *text);  // differs between processes
void            kube_words_init(KubeWords *w);
void            kube_words_finish(KubeWords *w);
KubeWord       *kube_words_take(KubeWords *w, const char *text);        // adds a holder
void            kube_words_drop(KubeWords *w, KubeWord *x);             // the last holder frees it
const KubeWord *kube_words_find(const KubeWords *w, const char *text);  // NULL: not held
