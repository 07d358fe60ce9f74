// HTML character references in Markdown, by name or number. Only common names are supported, because a table of all two
// thousand would double the size of the first view.

const NAMED: ReadonlyMap<string, string> = new Map(
  [
    "amp & lt < gt > quot \" apos ' nbsp \u00a0 shy \u00ad ensp \u2002 emsp \u2003 thinsp \u2009 zwnj \u200c zwj \u200d",
    "copy © reg ® trade ™ sect § para ¶ deg ° middot · bull • hellip … ndash – mdash — minus − times × divide ÷ plusmn ±",
    "lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ laquo « raquo » lsaquo ‹ rsaquo › dagger † Dagger ‡ permil ‰",
    "euro € pound £ yen ¥ cent ¢ curren ¤ frac12 ½ frac14 ¼ frac34 ¾ sup1 ¹ sup2 ² sup3 ³ ordf ª ordm º micro µ not ¬",
    "larr ← uarr ↑ rarr → darr ↓ harr ↔ lArr ⇐ rArr ⇒ hArr ⇔ check ✓ cross ✗ star ☆ hearts ♥",
    "ne ≠ le ≤ ge ≥ asymp ≈ equiv ≡ infin ∞ sum ∑ prod ∏ radic √ int ∫ part ∂ nabla ∇ isin ∈ notin ∉ sub ⊂ sup ⊃ cap ∩ cup ∪",
    "and ∧ or ∨ forall ∀ exist ∃ empty ∅ prop ∝ there4 ∴ iexcl ¡ iquest ¿",
    "Alpha Α Beta Β Gamma Γ Delta Δ Theta Θ Lambda Λ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω",
    "alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ chi χ psi ψ omega ω",
    "Agrave À Aacute Á Acirc Â Atilde Ã Auml Ä Aring Å AElig Æ Ccedil Ç Egrave È Eacute É Ecirc Ê Euml Ë Iuml Ï Ntilde Ñ Oacute Ó Ouml Ö Oslash Ø Uacute Ú Uuml Ü",
    "agrave à aacute á acirc â atilde ã auml ä aring å aelig æ ccedil ç egrave è eacute é ecirc ê euml ë igrave ì iacute í icirc î iuml ï ntilde ñ",
    "ograve ò oacute ó ocirc ô otilde õ ouml ö oslash ø ugrave ù uacute ú ucirc û uuml ü yacute ý yuml ÿ szlig ß oelig œ OElig Œ scaron š Scaron Š",
  ].flatMap((line) => {
    const words = line.split(" ");
    return words.flatMap((name, at) => (at % 2 === 0 ? [[name, words[at + 1] ?? ""] as const] : []));
  }),
);

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z]\w{1,30}));/g;

/** Leaves unknown names unchanged. */
export const withoutEntities = (text: string): string =>
  text.includes("&")
    ? text.replace(REFERENCE, (written, number?: string, hex?: string, name = "") =>
        number
          ? character(Number(number))
          : hex
            ? character(Number.parseInt(hex, 16))
            : (NAMED.get(name) ?? written),
      )
    : text;

const UNKNOWN = "\ufffd";

const character = (code: number): string =>
  code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? UNKNOWN : String.fromCodePoint(code);
