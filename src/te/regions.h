// The regions of buffers that one instance of a computation reads.
#pragma once

#include "tir/stmt.h"

namespace lathe::te {

// What `body` loads, one region a buffer, in order of first load, without the buffers of `except`. A dimension is the
// single index where every load agrees on it and it is known outside the body; else it is whole.
std::vector<tir::BufferRegion> reads_of(const ir::NodeRef& body, const std::vector<ir::Buffer>& except = {});

}  // namespace lathe::te
