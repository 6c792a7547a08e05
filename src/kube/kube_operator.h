// KubeOperator: what operators get of a ClusterKube: its pages, metrics and records, and the
// extender.
//
// It is created before the engine, whose hooks it is, and started after it.
#pragma once

#include "kube/cluster_kube.h"
#include "kube/kube_recorder.h"

typedef struct KubeOperatorOptions {                    // strings are borrowed
    const char           *listen, *extender, *records;  // addresses and file; NULL: none
    const KubeRecordHead *head;                         // of the records
    ClusterKubeHooks      next;                         // called after its own
    const char           *scheduler_name, *lease_name;  // lease_name NULL: no election
    const char           *server;                       // URL of the API server
    const char           *switch_file;                  // read again when it changes; NULL: none
    bool                  dry_run;
    bool                  may_listen;  // a listen address that is in use is no fault
    const Log            *log;
} KubeOperatorOptions;

typedef struct KubeOperator KubeOperator;

MUST_USE Err     kube_operator_create(KubeOperator **out, const KubeOperatorOptions *o);
ClusterKubeHooks kube_operator_hooks(KubeOperator *x);
// Opens the listeners.
MUST_USE Err kube_operator_start(KubeOperator *x, Loop *l, ClusterKube *k);
void         kube_operator_stop(KubeOperator *x);     // closes them, before the engine goes
MUST_USE Err kube_operator_destroy(KubeOperator *x);  // accepts NULL; reports faults of records

const char *kube_note_name(KubeNoteKind k);         // "started"
const char *kube_fit_reason_text(KubeFitReason r);  // without the resource's name
