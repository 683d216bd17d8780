with coupons as (

    select * from {{ ref('stg_coupons') }}

),

usage as (

    select
        coupon_code,
        count(*) as orders,
        sum(net_amount) as net_revenue,
        sum(discount_amount) as discounts
    from {{ ref('fct_orders') }}
    where coupon_code is not null
    group by coupon_code

)

select
    coupons.coupon_code,
    coupons.coupon_kind,
    coupons.percent_off,
    coalesce(usage.orders, 0) as orders,
    coalesce(usage.net_revenue, 0) as net_revenue,
    coalesce(usage.discounts, 0) as discounts

from coupons
left join usage on coupons.coupon_code = usage.coupon_code
