// Date: "2017-10-02 08:30:00" as seconds since 1970, as if every clock showed UTC.
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool date_read(const char *text,
               int64_t    *out);  // years 1970 to 2095; the time of day may be missing
