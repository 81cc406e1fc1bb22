//! Literals as exact fractions, so that mistakes are found where they are written.

use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::{BinOp, Expr, Lit, UnOp};

/// A fraction in lowest terms. The denominator is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) num: i128,
    pub(crate) den: i128,
}

impl Fraction {
    pub(crate) fn new(num: i128, den: i128) -> Option<Self> {
        if den == 0 {
            return None;
        }
        let divisor = common_divisor(num, den).checked_mul(den.signum())?;
        Some(Self { num: num.checked_div(divisor)?, den: den.checked_div(divisor)? })
    }

    pub(crate) fn over(self, other: Self) -> Option<Self> {
        Self::new(self.num.checked_mul(other.den)?, self.den.checked_mul(other.num)?)
    }

    pub(crate) fn whole(self) -> Option<i128> {
        (self.den == 1).then_some(self.num)
    }

    /// As a float expression.
    pub(crate) fn float(self) -> TokenStream {
        let (num, den) = (Literal::i128_suffixed(self.num), Literal::i128_suffixed(self.den));
        quote!((#num as f64 / #den as f64))
    }
}

impl std::fmt::Display for Fraction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.den {
            1 => write!(formatter, "{}", self.num),
            den => write!(formatter, "{}/{den}", self.num),
        }
    }
}

fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.saturating_abs(), b.saturating_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The number that an expression of literals is; `None` if it names anything.
pub(crate) fn literal(expr: &Expr) -> Option<Fraction> {
    match expr {
        Expr::Group(group) => literal(&group.expr),
        Expr::Paren(paren) => literal(&paren.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => {
            let Fraction { num, den } = literal(&unary.expr)?;
            Some(Fraction { num: num.checked_neg()?, den })
        }
        Expr::Binary(binary) if matches!(binary.op, BinOp::Div(_)) => {
            literal(&binary.left)?.over(literal(&binary.right)?)
        }
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => Fraction::new(int.base10_parse().ok()?, 1),
            Lit::Float(float) => decimal(float.base10_digits()),
            _ => None,
        },
        _ => None,
    }
}

/// A decimal number without an exponent, exactly.
fn decimal(digits: &str) -> Option<Fraction> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let den = 10i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let num = format!("{whole}{part}").parse().ok()?;
    Fraction::new(num, den)
}

/// An expression that is a division, as its two sides.
pub(crate) fn division(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::Group(group) => division(&group.expr),
        Expr::Paren(paren) => division(&paren.expr),
        Expr::Binary(binary) if matches!(binary.op, BinOp::Div(_)) => Some((&binary.left, &binary.right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<(i128, i128)> {
        literal(&syn::parse_str(text).unwrap()).map(|Fraction { num, den }| (num, den))
    }

    #[test]
    fn literals_are_exact() {
        assert_eq!(number("1/1024"), Some((1, 1024)));
        assert_eq!(number("-0.25"), Some((-1, 4)));
        assert_eq!(number("(2)/(-8.0)"), Some((-1, 4)));
        assert_eq!(number("5_000"), Some((5_000, 1)));
        assert_eq!(number("0.1"), Some((1, 10)));
    }

    #[test]
    fn names_and_divisions_by_zero_are_no_literals() {
        for text in ["MAX", "1/0", "1/MAX", "f(1)", "true"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
