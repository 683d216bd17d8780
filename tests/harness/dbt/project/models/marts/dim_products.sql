with products as (

    select * from {{ ref('stg_products') }}

),

categories as (

    select * from {{ ref('stg_categories') }}

),

suppliers as (

    select * from {{ ref('stg_suppliers') }}

),

product_reviews as (

    select * from {{ ref('int_product_reviews') }}

)

select
    products.product_id,
    products.sku,
    products.product_name,
    categories.category_name,
    categories.department,
    suppliers.supplier_name,
    products.list_price,
    products.unit_cost,
    products.list_price - coalesce(products.unit_cost, 0) as unit_margin,
    products.is_active,
    products.launched_on,
    coalesce(product_reviews.review_count, 0) as review_count,
    product_reviews.average_rating

from products
inner join categories on products.category_id = categories.category_id
left join suppliers on products.supplier_id = suppliers.supplier_id
left join product_reviews on products.product_id = product_reviews.product_id
