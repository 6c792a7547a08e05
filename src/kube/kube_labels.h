// KubeLabels: keys of the labels and annotations that are read, with their meaning.
#pragma once

typedef struct KubeLabelKey {
    const char *key, *meaning;
} KubeLabelKey;

typedef enum KubeLabel {
#define X(id, key, meaning) KUBE_LABEL_##id,
#include "kube/kube_labels.def"
#undef X
    KUBE_LABELS
} KubeLabel;

extern const KubeLabelKey kube_labels[KUBE_LABELS];
