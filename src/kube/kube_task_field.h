// KubeTaskField: the fields of a ClusterTask that records have, by offset.
#pragma once

#include "contract/cluster.h"

typedef enum KubeFieldType {
    FIELD_U64,
    FIELD_I64,
    FIELD_U32,
    FIELD_I32,
    FIELD_F64,
    FIELD_BOOL
} KubeFieldType;

typedef struct KubeTaskField {
    const char   *key;
    KubeFieldType type;
    size_t        offset, size;
} KubeTaskField;

static const KubeTaskField kube_task_fields[] = {
#define X(member, type, key)                                                                       \
    {key, FIELD_##type, offsetof(ClusterTask, member), sizeof((ClusterTask){.lent = 0}.member)},
#include "kube/kube_task_field.def"
#undef X
};
enum { KUBE_TASK_FIELDS = sizeof kube_task_fields / sizeof *kube_task_fields };
