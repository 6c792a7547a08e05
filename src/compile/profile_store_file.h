// The file of a ProfileStore: recognises it before SQLite opens it, because SQLite may write to any
// database that it opens, and creates it.
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define STORE_OWNER  1129272400  // application_id "COTP"
#define STORE_SCHEMA 1           // user_version

// *there: it is a store; false: it does not exist or is empty, and can be created. ERR_CONFIG: it
// is something else, or other users may write it.
MUST_USE Err profile_store_recognise(const char *path, bool *there);
// The same, and where there is none, creates it: whole, so that no process sees a part of one.
MUST_USE Err profile_store_ensure(const char *path);
