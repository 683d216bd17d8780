with order_items as (

    select * from {{ ref('stg_order_items') }}

),

orders as (

    select * from {{ ref('stg_orders') }}

),

products as (

    select * from {{ ref('stg_products') }}

),

categories as (

    select * from {{ ref('stg_categories') }}

),

final as (

    select
        order_items.order_id,
        order_items.line_no,
        orders.customer_id,
        orders.order_date,
        orders.order_status,
        orders.sales_channel,
        order_items.product_id,
        products.sku,
        products.product_name,
        categories.category_name,
        categories.department,
        order_items.quantity,
        order_items.unit_price,
        order_items.discount_amount,
        order_items.gross_amount,
        order_items.net_amount,
        order_items.quantity * coalesce(products.unit_cost, 0) as cost_of_goods

    from order_items
    inner join orders on order_items.order_id = orders.order_id
    inner join products on order_items.product_id = products.product_id
    inner join categories on products.category_id = categories.category_id

)

select * from final
