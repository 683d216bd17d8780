with items as (

    select * from {{ ref('fct_order_items') }}

),

product_sales as (

    select
        product_id,
        sum(quantity) as units_sold,
        sum(net_amount) as net_revenue,
        sum(gross_margin) as gross_margin,
        count(distinct order_id) as orders,
        max(order_date) as last_sold_on

    from items
    group by product_id

),

products as (

    select * from {{ ref('dim_products') }}

)

select
    products.product_id,
    products.product_name,
    products.category_name,
    products.department,
    products.supplier_name,
    products.average_rating,
    coalesce(product_sales.units_sold, 0) as units_sold,
    coalesce(product_sales.net_revenue, 0) as net_revenue,
    coalesce(product_sales.gross_margin, 0) as gross_margin,
    product_sales.gross_margin / nullif(product_sales.net_revenue, 0) as margin_rate,
    product_sales.last_sold_on

from products
left join product_sales on products.product_id = product_sales.product_id
