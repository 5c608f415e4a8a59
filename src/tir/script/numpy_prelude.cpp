#include "tir/script/numpy_prelude.h"

namespace lathe::tir {
namespace {

// One function, and the one that it calls itself.
struct Helper {
  std::string_view name, needs, text;
};

constexpr Helper helpers[] = {
    {"cast", "", R"(
def cast(x, dtype):
    return np.asarray(x).astype(dtype)[()]
)"},
    {"narrow", "", R"(
def narrow(x, dtype):  # rounded once: to float32 with the last bit set where it is not exact, then on
    x = np.asarray(x, np.float64)
    single = x.astype(np.float32)
    inexact = np.isfinite(single) & (single != x)
    toward_zero = np.where(abs(single) > abs(x), np.nextafter(single, np.float32(0)), single)
    odd = (toward_zero.view(np.uint32) | 1).view(np.float32)
    return np.where(inexact, odd, single).astype(dtype)[()]
)"},
    {"to_integer", "", R"(
def to_integer(x, dtype):  # toward zero; what is past 64 bits is the nearest that they hold, NaN is 0
    x = np.nan_to_num(np.trunc(np.asarray(x, np.float64)), posinf=np.inf, neginf=-np.inf)
    wide = np.uint64 if np.dtype(dtype) == np.uint64 else np.int64
    last = np.iinfo(wide).max
    above, below = x >= float(last), x < -(2.0**63)
    whole = np.where(above | below, 0, x)
    whole = np.where(whole < 0, whole.astype(np.int64).astype(wide), whole.astype(wide))
    return np.where(above, last, np.where(below, np.int64(-(2**63)).astype(wide), whole)).astype(dtype)[()]
)"},
    {"wrap", "", R"(
def wrap(x, dtype):  # an integer of Python's as one of so many bits
    size = 2 ** np.iinfo(dtype).bits
    x %= size
    return dtype(x - size if x > np.iinfo(dtype).max else x)
)"},
    {"truncdiv", "", R"(
def truncdiv(a, b):
    q = a // b
    return q + ((q < 0) & (q * b != a))
)"},
    {"truncmod", "truncdiv", R"(
def truncmod(a, b):
    return a - truncdiv(a, b) * b
)"},
    {"widened", "", R"(
def widened(x):
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x
)"},
    {"floor_divide", "widened", R"(
def floor_divide(a, b):
    return np.floor(widened(a) / widened(b)).astype(a.dtype)
)"},
    {"floor_modulo", "widened", R"(
def floor_modulo(a, b):
    rest = np.fmod(widened(a), widened(b))
    other_side = (rest != 0) & ((rest < 0) != (b < 0))
    return np.where(other_side, rest + widened(b), rest).astype(a.dtype)[()]
)"},
    {"power", "", R"(
def power(a, b):  # of integers; of a negative exponent the whole part of 1 / a**-b
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b % 2 != 0), 0)).astype(a.dtype)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, b.dtype.type(0))))[()]
)"},
    {"round_away", "", R"(
def round_away(x):
    half = np.nextafter(x.dtype.type(0.5), x.dtype.type(0))
    return np.trunc(x + np.copysign(half, x))
)"},
    {"erf", "", R"(
def erf(x):
    return np.vectorize(math.erf)(np.asarray(x, np.float64)).astype(x.dtype)[()]
)"},
    {"sigmoid", "", R"(
def sigmoid(x):
    return (1 / (1 + np.exp(-np.asarray(x, np.float64)))).astype(x.dtype)[()]
)"},
    {"fma", "", R"(
def fma(a, b, c):  # rounded once: exact, then to an odd last bit of float64 where float32 is wanted
    def one(a, b, c):
        a, b, c = float(a), float(b), float(c)
        if not np.isfinite([a, b, c]).all():
            return a * b + c
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:
            return a * b + c
        if abs(exact) >= 2**1024:
            return math.copysign(math.inf, exact)
        near = float(exact)
        if double or not math.isfinite(near) or Fraction(near) == exact:
            return near
        toward_zero = near if abs(Fraction(near)) < abs(exact) else math.nextafter(near, 0)
        return float((np.float64(toward_zero).view(np.uint64) | np.uint64(1)).view(np.float64))

    double = a.dtype == np.float64
    single = np.vectorize(one, otypes=[np.float64])(a, b, c)
    return (single if double else single.astype(np.float32)).astype(a.dtype)[()]
)"},
    {"bits_of", "", R"(
def bits_of(x):  # as integers of Python's, without a sign
    mask = 2 ** (8 * x.dtype.itemsize) - 1
    return [int(v) & mask for v in np.atleast_1d(x)]
)"},
    {"popcount", "bits_of", R"(
def popcount(x, dtype):
    return np.array([bin(v).count("1") for v in bits_of(x)], dtype).reshape(np.shape(x))[()]
)"},
    {"leading_zeros", "bits_of", R"(
def leading_zeros(x, dtype):
    return np.array([8 * x.dtype.itemsize - v.bit_length() for v in bits_of(x)], dtype).reshape(np.shape(x))[()]
)"},
    {"same_bits", "", R"(
def same_bits(x, dtype, lanes):
    bits = np.atleast_1d(x).view(dtype)
    return bits if lanes > 1 else bits[0]
)"},
    {"ramp", "", R"(
def ramp(first, step, lanes, dtype):
    return (first + np.arange(lanes) * step).astype(dtype)
)"},
    {"lanes_at", "", R"(
def lanes_at(mask, indices):
    indices = np.broadcast_arrays(mask, *indices)[1:]
    return tuple(index[mask] for index in indices)
)"},
    {"load_lanes", "lanes_at", R"(
def load_lanes(array, mask, *indices):  # 0 where the mask is not set
    result = np.zeros(len(mask), array.dtype)
    result[mask] = array[lanes_at(mask, indices)]
    return result
)"},
    {"store_lanes", "lanes_at", R"(
def store_lanes(value, array, mask, *indices):
    array[lanes_at(mask, indices)] = value[mask]
)"},
    {"laid_out", "", R"(
def laid_out(memory, dtype, shape, strides=None, offset=0):  # an array over memory of another's, strides in elements
    if memory.dtype != dtype:
        memory = np.ndarray(memory.nbytes // np.dtype(dtype).itemsize, dtype, memory)
    if strides is None:
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    size = memory.itemsize
    first = np.lib.stride_tricks.as_strided(memory, (offset + 1,), (size,))[offset:]
    return np.lib.stride_tricks.as_strided(first, shape, [stride * size for stride in strides])
)"},
};

}  // namespace

std::vector<std::string_view> numpy_words() {
  std::vector<std::string_view> words = {"np", "math", "ml_dtypes", "Fraction", "range", "min", "max", "int", "float"};
  for (const Helper& helper : helpers) words.push_back(helper.name);
  return words;
}

std::string numpy_prelude(const std::set<std::string_view>& used) {
  std::set<std::string_view> all = used;
  // What a helper needs stands before it, except in the row itself: from the last row to the first.
  std::string functions;
  for (size_t k = std::size(helpers); k-- > 0;) {
    if (!all.count(helpers[k].name)) continue;
    if (!helpers[k].needs.empty()) all.insert(helpers[k].needs);
    functions = "\n" + std::string(helpers[k].text) + functions;
  }
  const auto mentions = [&](std::string_view word) { return functions.find(word) != std::string::npos; };
  std::string text = "# Tensor programs as loops over NumPy arrays, one element at a time.\n";
  if (mentions("math.")) text += "import math\n";
  if (mentions("Fraction(")) text += "from fractions import Fraction\n";
  if (text.back() == '\n' && text.find("import ") != std::string::npos) text += "\n";
  if (all.count("ml_dtypes")) text += "import ml_dtypes\n";
  return text + "import numpy as np\n" + functions;
}

}  // namespace lathe::tir
