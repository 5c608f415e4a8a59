#include "te/regions.h"

#include "ir/structural.h"
#include "ir/visit.h"

namespace lathe::te {

using namespace ir;

namespace {

// Whether `index` means the same outside the body: it loads nothing and names no variable bound inside.
bool known_outside(const Expr& index, const std::unordered_set<const Node*>& bound) {
  bool known = true;
  pre_order(index, [&](const NodeRef& n) {
    if (n.as<BufferLoad>() || bound.count(n.get())) known = false;
    return known && n->node_class().family == "expr";
  });
  return known;
}

}  // namespace

std::vector<tir::BufferRegion> reads_of(const NodeRef& body, const std::vector<Buffer>& except) {
  std::unordered_set<const Node*> bound;
  pre_order(body, [&](const NodeRef& n) {
    if (const auto* let = n.as<Let>()) bound.insert(let->var.get());
    if (const auto* let = n.as<tir::LetStmt>()) bound.insert(let->var.get());
    return true;
  });

  std::vector<Buffer> order;
  std::unordered_map<Buffer, std::vector<Expr>> points;  // a null index: the whole dimension
  post_order(body, [&](const NodeRef& n) {
    const auto* load = n.as<BufferLoad>();
    if (!load || std::find(except.begin(), except.end(), load->buffer) != except.end()) return;
    const auto [it, first] = points.try_emplace(load->buffer, load->indices);
    if (first) order.push_back(load->buffer);
    for (size_t d = 0; d < load->indices.size(); ++d) {
      Expr& index = it->second[d];
      if (index && (!known_outside(index, bound) || !structural_equal(index, load->indices[d]))) index = {};
    }
  });

  std::vector<tir::BufferRegion> regions;
  for (const Buffer& buffer : order) {
    std::vector<Range> ranges;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      const Expr& index = points[buffer][d];
      ranges.push_back(index ? Range{index, int64(1)} : Range{int64(0), buffer->shape[d]});
    }
    regions.push_back(make<tir::BufferRegionNode>(buffer, std::move(ranges)));
  }
  return regions;
}

}  // namespace lathe::te
