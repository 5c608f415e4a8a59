#include "te/einsum.h"

#include "arith/analyzer.h"
#include "te/codes.h"

namespace lathe::te {
namespace {

// A letter, or 256 + n for the n-th dimension from the right of "...".
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_unnamed = 256;

[[noreturn]] void refuse_einsum(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::einsum, .message = std::move(message)});
}

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

struct Operand {
  Tensor tensor;
  Labels labels;
};

// The labels of one operand's text; `unnamed` dimensions where "..." stands.
Labels labels_of(const std::string& text, size_t unnamed, bool* has_dots) {
  Labels labels;
  *has_dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0) {
      if (*has_dots) refuse_einsum("'" + text + "' has '...' twice");
      *has_dots = true;
      for (size_t n = unnamed; n-- > 0;) labels.push_back(first_unnamed + static_cast<Label>(n));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      refuse_einsum(std::string("'") + text[i] + "' is no letter of a subscript");
    }
  }
  return labels;
}

size_t named_in(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); }));
}

class Contraction {
 public:
  Contraction(const std::string& subscripts, const std::vector<Tensor>& tensors) { read(subscripts, tensors); }

  Tensor run() {
    const size_t n = operands_.size();
    if (n <= 2) return multiply(operands_, output_, "einsum").tensor;
    while (operands_.size() > 2) {
      const auto [a, b] = n <= 8 ? next_of_best_order() : std::pair<size_t, size_t>{0, 1};
      std::vector<Operand> others;
      for (size_t i = 0; i < operands_.size(); ++i)
        if (i != a && i != b) others.push_back(operands_[i]);
      Operand product = multiply({operands_[a], operands_[b]}, kept(operands_[a], operands_[b], others), "einsum_pair");
      others.push_back(std::move(product));
      operands_ = std::move(others);
    }
    return multiply(operands_, output_, "einsum").tensor;
  }

 private:
  void read(std::string text, const std::vector<Tensor>& tensors) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const size_t arrow = text.find("->");
    const std::string left = text.substr(0, arrow);
    std::vector<std::string> parts(1);
    for (const char c : left) {
      if (c == ',')
        parts.emplace_back();
      else
        parts.back() += c;
    }
    if (parts.size() != tensors.size())
      refuse_einsum("'" + text + "' has " + std::to_string(parts.size()) + " operands, and " +
                    std::to_string(tensors.size()) + " are given");
    size_t most_unnamed = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      bool has_dots = false;
      labels_of(parts[i], 0, &has_dots);  // says what is no subscript
      const size_t named = named_in(parts[i]), rank = tensors[i].ndim();
      if (rank < named || (!has_dots && rank != named))
        refuse_einsum("'" + parts[i] + "' has " + std::to_string(named) + " indices, and '" + tensors[i].buffer->name +
                      "' has " + std::to_string(rank) + " dimensions");
      operands_.push_back({tensors[i], labels_of(parts[i], rank - named, &has_dots)});
      most_unnamed = std::max(most_unnamed, rank - named);
      if (tensors[i].dtype() != tensors[0].dtype())
        refuse_einsum("operands of " + tensors[0].dtype().str() + " and " + tensors[i].dtype().str());
      for (size_t d = 0; d < rank; ++d) meet(operands_.back().labels[d], tensors[i].shape()[d]);
    }
    if (arrow == std::string::npos) {
      for (size_t n = most_unnamed; n-- > 0;) output_.push_back(first_unnamed + static_cast<Label>(n));
      for (const auto& [label, extent] : extents_)
        if (label < first_unnamed && std::count(left.begin(), left.end(), static_cast<char>(label)) == 1)
          output_.push_back(label);
      return;
    }
    bool has_dots = false;
    const std::string right = text.substr(arrow + 2);
    output_ = labels_of(right, most_unnamed, &has_dots);
    if (!has_dots && most_unnamed > 0) refuse_einsum("the output '" + right + "' has no '...', and operands have");
    for (size_t i = 0; i < output_.size(); ++i) {
      if (!extents_.count(output_[i]))
        refuse_einsum(std::string("no operand has the output's index '") + static_cast<char>(output_[i]) + "'");
      if (std::count(output_.begin(), output_.end(), output_[i]) > 1)
        refuse_einsum(std::string("the output has the index '") + static_cast<char>(output_[i]) + "' twice");
    }
  }

  // The extent of an index is that of the dimensions it names; an extent of 1 meets any.
  void meet(Label label, const Expr& extent) {
    Expr& known = extents_[label];
    if (!known || ir::is_int(known, 1)) {
      known = extent;
      return;
    }
    if (ir::is_int(extent, 1) || arith::Analyzer().can_prove_equal(known, extent)) return;
    if (ir::as_int(known) && ir::as_int(extent)) {
      const std::string which =
          label < first_unnamed ? std::string("index '") + static_cast<char>(label) + "'" : "'...'";
      refuse_einsum(which + " has the extents " + std::to_string(*ir::as_int(known)) + " and " +
                    std::to_string(*ir::as_int(extent)));
    }
    refuse_einsum("extents of one index could not be shown to be equal");
  }

  // The labels of two operands that the output or another operand has.
  Labels kept(const Operand& a, const Operand& b, const std::vector<Operand>& others) const {
    Labels labels;
    for (const Operand* side : {&a, &b})
      for (const Label label : side->labels) {
        const bool wanted = has(output_, label) || std::any_of(others.begin(), others.end(),
                                                               [&](const Operand& o) { return has(o.labels, label); });
        if (wanted && !has(labels, label)) labels.push_back(label);
      }
    return labels;
  }

  double size_of(Label label) const { return static_cast<double>(ir::as_int(extents_.at(label)).value_or(64)); }

  // Dynamic programming over sets of operands: the cheapest way to multiply each set, and the pair that comes first.
  std::pair<size_t, size_t> next_of_best_order() const {
    const size_t n = operands_.size(), sets = size_t{1} << n;
    std::vector<Labels> labels(sets);
    std::vector<double> cost(sets, std::numeric_limits<double>::infinity());
    std::vector<size_t> part(sets);
    for (size_t set = 1; set < sets; ++set) {
      Labels inside;
      for (size_t i = 0; i < n; ++i)
        if (set >> i & 1)
          for (const Label label : operands_[i].labels)
            if (!has(inside, label)) inside.push_back(label);
      for (const Label label : inside) {
        bool wanted = has(output_, label) || std::popcount(set) == 1;
        for (size_t i = 0; i < n; ++i) wanted = wanted || (!(set >> i & 1) && has(operands_[i].labels, label));
        if (wanted) labels[set].push_back(label);
      }
      if (std::popcount(set) == 1) {
        cost[set] = 0;
        continue;
      }
      for (size_t a = (set - 1) & set; a > 0; a = (a - 1) & set) {
        const size_t b = set ^ a;
        if (a < b) continue;
        Labels all = labels[a];
        for (const Label label : labels[b])
          if (!has(all, label)) all.push_back(label);
        double work = 1;
        for (const Label label : all) work *= size_of(label);
        if (cost[a] + cost[b] + work < cost[set]) {
          cost[set] = cost[a] + cost[b] + work;
          part[set] = a;
        }
      }
    }
    // Down to a pair of single operands: it is multiplied first.
    size_t set = sets - 1;
    while (std::popcount(set) > 2) {
      const size_t a = part[set], b = set ^ a;
      set = std::popcount(a) >= 2 ? a : b;
    }
    const auto low = static_cast<size_t>(std::countr_zero(set));
    return {low, static_cast<size_t>(std::countr_zero(set & (set - 1)))};
  }

  Operand multiply(const std::vector<Operand>& operands, const Labels& result, const std::string& name) const {
    Labels summed;
    std::vector<Tensor> inputs;
    for (const Operand& operand : operands) {
      inputs.push_back(operand.tensor);
      for (const Label label : operand.labels)
        if (!has(result, label) && !has(summed, label)) summed.push_back(label);
    }
    std::vector<Expr> shape;
    for (const Label label : result) shape.push_back(extents_.at(label));
    std::vector<IterVar> axes;
    for (const Label label : summed)
      axes.push_back(reduce_axis(ir::int64(0), extents_.at(label),
                                 label < first_unnamed ? std::string(1, static_cast<char>(label)) : "r"));
    const Tensor made = compute(
        shape,
        [&](const std::vector<Expr>& at) {
          std::map<Label, Expr> index;
          for (size_t d = 0; d < result.size(); ++d) index[result[d]] = at[d];
          for (size_t d = 0; d < summed.size(); ++d) index[summed[d]] = axes[d]->var;
          Expr product;
          for (const Operand& operand : operands) {
            std::vector<Expr> own;
            for (size_t d = 0; d < operand.labels.size(); ++d)
              own.push_back(ir::is_int(operand.tensor.shape()[d], 1) ? ir::int64(0) : index[operand.labels[d]]);
            const Expr element = operand.tensor(std::move(own));
            product = product ? ir::mul(product, element) : element;
          }
          return axes.empty() ? product : sum(product, axes);
        },
        inputs, name);
    return {made, result};
  }

  std::vector<Operand> operands_;
  Labels output_;
  std::map<Label, Expr> extents_;
};

}  // namespace

Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands) {
  if (operands.empty()) refuse_einsum("there is nothing to multiply");
  return Contraction(subscripts, operands).run();
}

}  // namespace lathe::te
