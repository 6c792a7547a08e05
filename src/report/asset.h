// Asset: files that pages embed, compiled into the program: Chart.js, page.js, page.css.
#pragma once

#include <stddef.h>

extern const unsigned char asset_chart_js[], asset_page_js[], asset_page_css[];
extern const size_t        asset_chart_js_bytes, asset_page_js_bytes, asset_page_css_bytes;
