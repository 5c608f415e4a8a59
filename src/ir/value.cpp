#include "ir/value.h"

namespace lathe::ir {

Value::Value() = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Value::Value(bool v) : data(v) {}
Value::Value(int v) : data(static_cast<int64_t>(v)) {}
Value::Value(int64_t v) : data(v) {}
Value::Value(double v) : data(v) {}
Value::Value(const char* v) : data(std::string(v)) {}
Value::Value(std::string_view v) : data(std::string(v)) {}
Value::Value(std::string v) : data(std::move(v)) {}
Value::Value(DType v) : data(v) {}
Value::Value(List v) : data(std::move(v)) {}
Value::Value(Map v) : data(std::move(v)) {}
Value::Value(NodeRef v) : data(std::move(v)) {}

}  // namespace lathe::ir
