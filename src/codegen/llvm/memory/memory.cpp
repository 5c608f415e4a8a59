// Loads and stores: contiguous, gathered, masked, and of register buffers; packed.cpp has those below a byte.
#include "codegen/emit/ramp.h"
#include "codegen/llvm/emitter.h"
#include "ir/build.h"
#include "ir/floor.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_drop_store_mask, "codegen_llvm_test", "a masked vector store writes all of its lanes");
LATHE_FAULT(llvm_near_lane, "codegen_llvm_test", "the last lane of a shuffled load is its first element");

using namespace ir;  // NOLINT

namespace {

// Elements that lie in so few rows as long as a vector come in whole rows and are picked from these; others one by one.
constexpr size_t most_rows = 4;
constexpr int64_t largest_near_stride = most_rows;

// A vector index as base + a constant for each lane, or nothing; no base is zero.
struct LaneOffsets {
  Expr base;
  std::vector<int64_t> offsets;
};

std::optional<LaneOffsets> as_lane_offsets(const Expr& e) {
  const auto lanes = static_cast<size_t>(e->dtype.lanes);
  if (const auto* n = e.as<Ramp>()) {
    const auto stride = as_int(n->stride), start = as_int(n->base);
    if (!stride) return std::nullopt;
    LaneOffsets found{start ? Expr{} : n->base, {}};
    for (size_t l = 0; l < lanes; ++l) found.offsets.push_back(start.value_or(0) + static_cast<int64_t>(l) * *stride);
    return found;
  }
  if (const auto* n = e.as<Broadcast>()) {
    if (!n->value->dtype.is_scalar()) return std::nullopt;
    const auto known = as_int(n->value);
    return LaneOffsets{known ? Expr{} : n->value, std::vector<int64_t>(lanes, known.value_or(0))};
  }
  const auto both = [&](const auto& n, const auto& of_lane, const auto& of_base) -> std::optional<LaneOffsets> {
    auto a = as_lane_offsets(n.a);
    const auto b = a ? as_lane_offsets(n.b) : std::nullopt;
    if (!b) return std::nullopt;
    if (a->base || b->base) {
      const auto base = of_base(*a, *b);
      if (!base) return std::nullopt;
      a->base = *base;
    }
    for (size_t l = 0; l < lanes; ++l) {
      const auto value = of_lane(a->offsets[l], b->offsets[l]);
      if (!value) return std::nullopt;
      a->offsets[l] = *value;
    }
    return a;
  };
  const auto sum = [](int64_t x, int64_t y) -> std::optional<int64_t> { return x + y; };
  const auto difference = [](int64_t x, int64_t y) -> std::optional<int64_t> { return x - y; };
  const auto product = [](int64_t x, int64_t y) -> std::optional<int64_t> { return x * y; };
  const auto quotient = [](int64_t x, int64_t y) -> std::optional<int64_t> {
    return y > 0 ? std::optional(floor_div(x, y)) : std::nullopt;
  };
  const auto remainder = [](int64_t x, int64_t y) -> std::optional<int64_t> {
    return y > 0 ? std::optional(floor_mod(x, y)) : std::nullopt;
  };
  const auto joined = [](const LaneOffsets& a, const LaneOffsets& b) -> std::optional<Expr> {
    return !a.base ? b.base : !b.base ? a.base : ir::add(a.base, b.base);
  };
  const auto left = [](const LaneOffsets& a, const LaneOffsets& b) {
    return b.base ? std::nullopt : std::optional(a.base);
  };
  const auto none = [](const LaneOffsets&, const LaneOffsets&) { return std::optional<Expr>(); };
  if (const auto* n = e.as<Add>()) return both(*n, sum, joined);
  if (const auto* n = e.as<Sub>()) return both(*n, difference, left);
  if (const auto* n = e.as<Mul>()) return both(*n, product, none);
  if (const auto* n = e.as<FloorDiv>()) return both(*n, quotient, none);
  if (const auto* n = e.as<FloorMod>()) return both(*n, remainder, none);
  return std::nullopt;
}

// Where rows begin that are as long as there are offsets, the least of which is 0, and hold them all. The last one ends
// with the last offset, so that nothing is read beyond what the program reaches.
std::vector<int64_t> row_starts(std::vector<int64_t> offsets) {
  const auto lanes = static_cast<int64_t>(offsets.size());
  std::sort(offsets.begin(), offsets.end());
  std::vector<int64_t> starts;
  for (const int64_t offset : offsets)
    if (starts.empty() || offset >= starts.back() + lanes)
      starts.push_back(std::max<int64_t>(std::min(offset, offsets.back() + 1 - lanes), 0));
  return starts;
}

}  // namespace

Storage& KernelEmitter::storage_of(const Buffer& buffer) {
  const auto it = frame_.storages.find(buffer->data.get());
  if (it != frame_.storages.end()) return it->second;
  // A pointer bound by a let: memory of which nothing is known.
  Storage unknown;
  unknown.address = frame_.values.at(buffer->data.get());
  unknown.shared = frame_.parallel_body;
  return frame_.storages[buffer->data.get()] = unknown;
}

void KernelEmitter::tag(llvm::Instruction* access, const Buffer& buffer) {
  const int scope = storage_of(buffer).scope;
  if (scope < 0) return;
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scope_[static_cast<size_t>(scope)]);
  if (llvm::MDNode* others = alias_others_[static_cast<size_t>(scope)])
    access->setMetadata(llvm::LLVMContext::MD_noalias, others);
}

KernelEmitter::V KernelEmitter::index_value(const Expr& index) {
  const bool outer = std::exchange(in_index_, true);
  const V v = value(index);
  in_index_ = outer;
  return v;
}

// The address of element `index`, or of each lane's.
KernelEmitter::V KernelEmitter::address(const Buffer& buffer, V index) {
  return builder_.CreateInBoundsGEP(memory_type(buffer->dtype), storage_of(buffer).address, index);
}

// The lanes an access touches; null: all of them.
KernelEmitter::V KernelEmitter::mask_of(const Expr& predicate, int lanes) {
  V mask = nullptr;
  if (predicate && !is_int(predicate, 1)) {
    const V live = std::exchange(live_, nullptr);
    mask = value(predicate);
    live_ = live;
  }
  if (!live_) return mask;
  V live = live_;
  if (lanes == 1 && lanes_of(live) > 1) live = builder_.CreateOrReduce(live);
  if (lanes_of(live) == 1 && lanes > 1) live = splat(live, lanes);
  support::require(lanes_of(live) == lanes, "an access has other lanes than the choice around it");
  return mask ? builder_.CreateAnd(mask, live) : live;
}

KernelEmitter::V KernelEmitter::load(const BufferLoad& n) {
  const DType t = n.dtype, element = n.buffer->dtype;
  const Expr& index = n.indices.at(0);
  Storage& storage = storage_of(n.buffer);
  if (!storage.address) {
    const tir::RegisterIndex at = *tir::register_index(index);
    const V v = at.stride == 1 ? load_registers(storage, at.first, t.lanes) : load_apart(storage, t, at);
    const V mask = n.predicate ? mask_of(n.predicate, t.lanes) : nullptr;
    return mask ? builder_.CreateSelect(mask, v, zero(t)) : v;
  }
  const llvm::Align align(static_cast<uint64_t>(element.element_bytes()));
  const auto ramp = t.is_vector() ? as_ramp(index) : std::nullopt;
  V mask = mask_of(n.predicate, t.lanes);

  if (t.is_scalar() || (ramp && ramp->stride == 0 && !mask)) {
    const V at_index = index_value(t.is_scalar() ? index : ramp->base);
    const auto read = [&]() -> V {
      if (is_packed(element)) return load_packed(n.buffer, at_index);
      return from_memory(
          tagged(builder_.CreateAlignedLoad(memory_type(element), address(n.buffer, at_index), align), n.buffer),
          element);
    };
    if (!mask) return splat(read(), t.lanes);
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *reads = block("read"), *after = block("after_read");
    builder_.CreateCondBr(mask, reads, after);
    builder_.SetInsertPoint(reads);
    const V v = read();
    llvm::BasicBlock* from = builder_.GetInsertBlock();
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
    llvm::PHINode* phi = builder_.CreatePHI(v->getType(), 2);
    phi->addIncoming(zero(t), before);
    phi->addIncoming(v, from);
    return phi;
  }
  if (is_packed(element)) return load_packed_lanes(n.buffer, index, mask);
  llvm::Type* type = memory_type(t);
  // A ramp has one multiplication as its base; as offsets of lanes its products are not looked into.
  if (ramp && !mask && ramp->stride >= 1 && ramp->stride <= largest_near_stride) {
    std::vector<int64_t> offsets;
    for (int64_t lane = 0; lane < t.lanes; ++lane) offsets.push_back(lane * ramp->stride);
    return from_memory(load_near(n.buffer, index_value(ramp->base), offsets), t);
  }
  if (const auto near = ramp || mask ? std::nullopt : as_lane_offsets(index)) {
    const int64_t least = *std::min_element(near->offsets.begin(), near->offsets.end());
    std::vector<int64_t> offsets;
    for (const int64_t offset : near->offsets) offsets.push_back(offset - least);
    if (row_starts(offsets).size() <= most_rows) {
      const Expr start = int64(least);
      const V first = index_value(near->base ? ir::add(near->base, start) : start);
      return from_memory(load_near(n.buffer, first, offsets), t);
    }
  }
  if (ramp && ramp->stride == 1) {
    const V at = address(n.buffer, index_value(ramp->base));
    return from_memory(
        tagged(builder_.CreateMaskedLoad(type, at, align, mask, llvm::Constant::getNullValue(type)), n.buffer), t);
  }
  const V at = address(n.buffer, index_value(index));
  return from_memory(
      tagged(builder_.CreateMaskedGather(type, at, align, mask, llvm::Constant::getNullValue(type)), n.buffer), t);
}

void KernelEmitter::store(const tir::BufferStore& n) {
  const DType element = n.buffer->dtype, t = n.value->dtype;
  const Expr& index = n.indices.at(0);
  const V v = value(n.value);
  Storage& storage = storage_of(n.buffer);
  V mask = mask_of(n.predicate, t.lanes);
  if (!storage.address) {
    return store_registers(storage, tir::register_index(index)->first, t.lanes, v, mask);
  }
  const llvm::Align align(static_cast<uint64_t>(element.element_bytes()));
  const auto ramp = t.is_vector() ? as_ramp(index) : std::nullopt;
  if (is_packed(element)) return store_packed_lanes(n.buffer, index, v, mask);
  if (t.is_scalar()) {
    const V at = index_value(index);
    llvm::BasicBlock* after = nullptr;
    if (mask) {
      llvm::BasicBlock* writes = block("write");
      after = block("after_write");
      builder_.CreateCondBr(mask, writes, after);
      builder_.SetInsertPoint(writes);
    }
    tag(builder_.CreateAlignedStore(to_memory(v, element), address(n.buffer, at), align), n.buffer);
    if (after) {
      builder_.CreateBr(after);
      builder_.SetInsertPoint(after);
    }
    return;
  }
  const V memory = to_memory(v, t);
  if (ramp && ramp->stride == 1) {
    V at_index = index_value(ramp->base);
    if (mask && support::flip(llvm_drop_store_mask)) mask = nullptr;
    const V at = address(n.buffer, at_index);
    if (mask)
      tag(builder_.CreateMaskedStore(memory, at, align, mask), n.buffer);
    else
      store_row(n.buffer, memory, at);
    return;
  }
  // A scatter writes its lanes in order: of two lanes at one address the later one stays.
  const V at = address(n.buffer, index_value(index));
  const V all = mask ? mask : llvm::Constant::getAllOnesValue(i(1, t.lanes));
  tag(builder_.CreateMaskedScatter(memory, at, align, all), n.buffer);
}

// Whether a vector of so many elements, which no register has, is better read and written as a wider one of which only
// the first lanes count: in one instruction instead of one for each power of two.
bool KernelEmitter::is_masked_row(DType element, int lanes) const {
  if ((lanes & (lanes - 1)) == 0 || !target_.has("avx512vl")) return false;
  return element.element_bytes() >= 4 || target_.has("avx512bw");
}

namespace {

std::vector<int> numbers(int count) {
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

llvm::Constant* KernelEmitter::first_lanes(int count, int of) {
  std::vector<llvm::Constant*> mask;
  for (int lane = 0; lane < of; ++lane) mask.push_back(builder_.getInt1(lane < count));
  return llvm::ConstantVector::get(mask);
}

KernelEmitter::V KernelEmitter::load_row(const Buffer& buffer, int lanes, V at) {
  const DType element = buffer->dtype;
  const llvm::Align align(static_cast<uint64_t>(element.element_bytes()));
  llvm::Type* type = memory_type(element.with_lanes(lanes));
  if (!is_masked_row(element, lanes)) return tagged(builder_.CreateAlignedLoad(type, at, align), buffer);
  const int whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes)));
  llvm::Type* wide = memory_type(element.with_lanes(whole));
  const V row =
      tagged(builder_.CreateMaskedLoad(wide, at, align, first_lanes(lanes, whole), llvm::Constant::getNullValue(wide)),
             buffer);
  return builder_.CreateShuffleVector(row, numbers(lanes));
}

void KernelEmitter::store_row(const Buffer& buffer, V v, V at) {
  const int lanes = lanes_of(v);
  const llvm::Align align(static_cast<uint64_t>(buffer->dtype.element_bytes()));
  if (!is_masked_row(buffer->dtype, lanes)) return tag(builder_.CreateAlignedStore(v, at, align), buffer);
  const int whole = static_cast<int>(std::bit_ceil(static_cast<unsigned>(lanes)));
  std::vector<int> widened = numbers(whole);
  std::fill(widened.begin() + lanes, widened.end(), -1);  // anything
  tag(builder_.CreateMaskedStore(builder_.CreateShuffleVector(v, widened), at, align, first_lanes(lanes, whole)),
      buffer);
}

// The elements at constant offsets from the first, which is the least of them: from as few rows as hold them all.
KernelEmitter::V KernelEmitter::load_near(const Buffer& buffer, V first, const std::vector<int64_t>& offsets) {
  const auto lanes = static_cast<int64_t>(offsets.size());
  const int64_t span = *std::max_element(offsets.begin(), offsets.end()) + 1;
  const auto row_at = [&](int64_t start, int64_t count) {
    const V index = builder_.CreateAdd(first, llvm::ConstantInt::get(first->getType(), static_cast<uint64_t>(start)));
    return load_row(buffer, static_cast<int>(count), address(buffer, index));
  };
  if (span == 1) return splat(row_at(0, 1), static_cast<int>(lanes));
  if (span <= lanes) {
    const V row = row_at(0, span);
    std::vector<int> picked(offsets.begin(), offsets.end());
    if (support::flip(llvm_near_lane)) picked.back() = 0;
    return span == lanes && std::is_sorted(offsets.begin(), offsets.end()) &&
                   std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end()
               ? row
               : builder_.CreateShuffleVector(row, picked);
  }
  const std::vector<int64_t> starts = row_starts(offsets);
  V all = row_at(0, lanes);
  bool is_picked = false;  // `all` has lanes of the result, not elements of the first row
  for (size_t row = 1; row < starts.size(); ++row) {
    const int64_t before = starts[row - 1] + lanes;  // where the rows before it end
    std::vector<int> both(offsets.size(), -1);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const int64_t element = offsets[static_cast<size_t>(lane)];
      int& from = both[static_cast<size_t>(lane)];
      if (element < before)
        from = static_cast<int>(is_picked ? lane : element);
      else if (element < starts[row] + lanes)
        from = static_cast<int>(lanes + element - starts[row]);
    }
    all = builder_.CreateShuffleVector(all, row_at(starts[row], lanes), both);
    is_picked = true;
  }
  return all;
}

// A register buffer is split where no access crosses; most chunks are one vector and all its accesses are whole.
KernelEmitter::V KernelEmitter::load_registers(const Storage& storage, int64_t first, int lanes) {
  for (const Storage::Chunk& chunk : storage.chunks) {
    if (first < chunk.first || first + lanes > chunk.first + chunk.count) continue;
    llvm::Type* whole = chunk.slot->getAllocatedType();
    const V v = builder_.CreateLoad(whole, chunk.slot);
    if (chunk.count == lanes) return v;
    const int from = static_cast<int>(first - chunk.first);
    if (lanes == 1) return builder_.CreateExtractElement(v, static_cast<uint64_t>(from));
    std::vector<int> picked(static_cast<size_t>(lanes));
    std::iota(picked.begin(), picked.end(), from);
    return builder_.CreateShuffleVector(v, picked);
  }
  support::unreachable("an access of a register buffer has no chunk");
}

void KernelEmitter::store_registers(const Storage& storage, int64_t first, int lanes, V v, V mask) {
  if (mask) v = builder_.CreateSelect(mask, v, load_registers(storage, first, lanes));
  for (const Storage::Chunk& chunk : storage.chunks) {
    if (first < chunk.first || first + lanes > chunk.first + chunk.count) continue;
    if (chunk.count == lanes) {
      builder_.CreateStore(v, chunk.slot);
      return;
    }
    V whole = builder_.CreateLoad(chunk.slot->getAllocatedType(), chunk.slot);
    for (int l = 0; l < lanes; ++l) {
      const V lane = lanes == 1 ? v : builder_.CreateExtractElement(v, static_cast<uint64_t>(l));
      whole = builder_.CreateInsertElement(whole, lane, static_cast<uint64_t>(first - chunk.first + l));
    }
    builder_.CreateStore(whole, chunk.slot);
    return;
  }
  support::unreachable("an access of a register buffer has no chunk");
}

}  // namespace lathe::codegen
