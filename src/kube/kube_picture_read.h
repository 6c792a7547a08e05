// KubePictureRead: pictures from the lines of a record, each from the one before and its changes.
#pragma once

#include <jansson.h>

#include "kube/kube_view.h"

typedef struct KubePictureRead {
    ClusterTask *tasks;    // [n_slots]; slices are owned
    KubeServer  *servers;  // [n_servers]; strings are owned
    char       **tenants;  // [n_tenants], owned
    uint32_t    *waiting, *running;
    uint64_t   **sets;  // [n_sets], owned
    uint32_t     n_slots, n_servers, n_tenants, n_waiting, n_running, n_sets;
    uint32_t     n_classes;
    uint64_t     generation;
} KubePictureRead;

void kube_picture_read_init(KubePictureRead *x, uint32_t n_classes);  // of the profiles
void kube_picture_read_finish(KubePictureRead *x);

// The next picture, valid until the next call; profiles are not set. ERR_INVALID: the line does not
// fit those before it.
MUST_USE Err kube_picture_read(KubePictureRead *x, const json_t *line, KubePicture *out);
