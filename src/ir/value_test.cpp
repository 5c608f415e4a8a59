#include "ir/value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/build.h"
#include "ir/function.h"
#include "ir/structural.h"

namespace lathe::ir {
namespace {

struct Thing : FunctionNode {
  static constexpr std::string_view kind_name = "Thing";
  Expr body;
  static constexpr auto fields() { return std::tuple{field("body", &Thing::body), field("attrs", &Thing::attrs)}; }
};

BaseFunc thing(Expr body, Attributes attrs = {}) {
  Ref<Thing> made = make<Thing>(std::move(body));
  return with(*made, [&](Thing& copy) { copy.attrs = std::move(attrs); });
}

bool equal(const Value& a, const Value& b) {
  Equality equality(false);
  return equality.values(a, b);
}
support::Hash128 hash(const Value& v) {
  StructuralHasher hasher(true);
  hasher.value(v);
  return hasher.finish();
}

TEST(value, equality_is_by_type_and_content) {
  const std::vector<Value> all{Value(),
                               true,
                               false,
                               1,
                               0,
                               1.0,
                               0.0,
                               -0.0,
                               "1",
                               "",
                               DType::int64(),
                               DType::float32(),
                               Value(Value::List{1, 2}),
                               Value(Value::List{2, 1}),
                               Value(Value::List{}),
                               Value(Value::Map{{"a", 1}}),
                               Value(Value::Map{{"b", 1}}),
                               Value(int64(1)),
                               Value(int64(2))};
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(equal(all[i], all[j]), i == j) << i << " and " << j;
      EXPECT_EQ(hash(all[i]) == hash(all[j]), i == j) << i << " and " << j;
    }
  EXPECT_TRUE(equal(std::nan(""), std::nan("")));
  EXPECT_TRUE(equal(Value(int64(7)), Value(int64(7)))) << "nodes compare by content";
}

TEST(attributes, are_read_by_type) {
  Attributes attributes{{"tile", 8}, {"name", "conv"}};
  EXPECT_EQ(attributes.get_or<int64_t>("tile", 1), 8);
  EXPECT_EQ(attributes.get_or<int64_t>("name", 1), 1) << "of another type";
  EXPECT_EQ(attributes.get<std::string>("none"), nullptr);
  attributes.set("tile", 4);
  attributes.erase("name");
  EXPECT_EQ(attributes.size(), 1u);
  EXPECT_FALSE(attributes.contains("name"));
}

TEST(module, keeps_functions_in_order_of_insertion) {
  IRModule module;
  module.set("b", thing(int64(1)));
  module.set("a", thing(int64(2)));
  module.set("c", thing(int64(3)));
  module.set("b", thing(int64(4)));
  std::string order;
  for (const auto& [name, function] : module) order += name;
  EXPECT_EQ(order, "bac");
  EXPECT_TRUE(is_int(module.find_as<Thing>("b")->body, 4));
  EXPECT_TRUE(module.erase("b"));
  EXPECT_FALSE(module.erase("b"));
  EXPECT_TRUE(module.find("c"));
  EXPECT_FALSE(module.find("b"));
  EXPECT_EQ(module.unique_name("c"), "c_1");
  EXPECT_EQ(module.unique_name("d"), "d");
}

TEST(module, unique_names_of_one_hint_are_free_and_numbered_in_order) {
  IRModule module;
  std::string last;
  for (int64_t i = 0; i < 100; ++i) {
    last = module.unique_name("f");
    ASSERT_FALSE(module.find(last));
    module.set(last, thing(int64(i)));
  }
  EXPECT_EQ(last, "f_99");
  for (const char* name : {"f_3", "f_40", "f_41"}) module.erase(name);
  for (int64_t i = 0; i < 5; ++i) {
    const std::string name = module.unique_name("f");
    ASSERT_FALSE(module.find(name)) << name;
    module.set(name, thing(int64(i)));
  }
}

TEST(module, equality_goes_by_name_not_by_order) {
  IRModule one, two;
  one.set("f", thing(int64(1)));
  one.set("g", thing(int64(2)));
  two.set("g", thing(int64(2)));
  two.set("f", thing(int64(1)));
  EXPECT_TRUE(structural_equal(one, two));
  EXPECT_EQ(structural_hash(one), structural_hash(two));
  two.set("f", thing(int64(3)));
  EXPECT_NE(first_difference(one, two)->find("f.body"), std::string::npos) << *first_difference(one, two);
  EXPECT_NE(structural_hash(one), structural_hash(two));
  two.set("f", thing(int64(1), {{"k", 1}}));
  EXPECT_FALSE(structural_equal(one, two));
  two.set("f", thing(int64(1)));
  two.attrs.set("target", "native");
  EXPECT_FALSE(structural_equal(one, two));
  EXPECT_NE(structural_hash(one), structural_hash(two));
  two.set("h", thing(int64(1)));
  EXPECT_NE(first_difference(one, two)->find("'h' is on the right only"), std::string::npos);
}

TEST(module, copies_share_functions_but_not_changes) {
  IRModule one;
  one.set("f", thing(int64(1)));
  IRModule two = one;
  two.set("f", thing(int64(2)));
  EXPECT_TRUE(is_int(one.find_as<Thing>("f")->body, 1));
}

}  // namespace
}  // namespace lathe::ir
