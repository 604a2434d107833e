"""Words of column names, by which facts, past events, durations and amounts of money are recognised.

A name is split into words at capitals, digits, underscores and the like, in lower case and without accents
(`name_words`). The lists have words of English, German, French, Norwegian, Danish, Swedish, Dutch, Spanish, Italian,
Portuguese, Polish and Finnish, without those that have another meaning in English, such as "genre". Only listed
compounds are known.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PERSON = _words(
    """
    sex gender birth born birthday birthdate birthplace race ethnicity ethnic nationality citizen citizenship native
    religion
    marital disability children child kids dependents dependants siblings foreign
    diagnosis diagnoses diagnosed disease diseases illness chronic hypertension diabetes diabetic asthma pregnancies
    geschlecht geburt geburtsdatum geburtsjahr geburtsort herkunft staatsangehorigkeit familienstand kinder kinderzahl
    krankheit erkrankung vorerkrankung vorerkrankungen bluthochdruck
    sexe naissance nationalite enfants maladie maladies diabete
    kjonn fodt fodselsaar fodselsdato nasjonalitet sivilstand sivilstatus sykdom
    fodselsdag nationalitet civilstand fodelseaar fodelsedatum sygdom sjukdom
    geslacht geboorte geboortedatum geboortejaar nationaliteit burgerlijke kinderen ziekte
    sexo genero nacimiento nacionalidad hijos enfermedad
    sesso genere nascita nazionalita figli malattia
    nascimento nacionalidade filhos doenca
    plec urodzenia narodowosc dzieci choroba
    sukupuoli syntymavuosi syntymaaika kansalaisuus lapset sairaus
    """
)
PLACE = _words(
    """
    region district county province municipality zip zipcode postcode postal addr residence
    bundesland landkreis gemeinde plz postleitzahl wohnort commune departement
    fylke kommune postnummer landsdel gemeente provincie
    provincia municipio regione comune regiao wojewodztwo gmina maakunta kunta
    """
)
AGE = _words("age alter alder aalder leeftijd edad eta idade wiek ika")
PAST = _words(
    """
    past previous previously prior priors ever former history default defaulted defaults delq delinquency
    delinquencies delinquent dlqin late overdue arrears missed bankruptcy bankruptcies bankrupt derog derogatory
    conviction convictions convicted arrest arrests arrested inquiry inquiries inq claim claims fraud since
    verzug mahnung mahnungen insolvenz vorstrafe vorstrafen betrug schufa
    retard retards impaye impayes faillite fraude sinistre sinistres
    mislighold purring purringer konkurs inkasso svindel betalingsanmerkning betalingsanmerkninger
    rykker rykkere betalningsanmarkning betalningsanmarkningar
    achterstand achterstanden faillissement
    impago impagos morosidad mora quiebra siniestro siniestros
    insoluto insoluti ritardo ritardi fallimento
    atraso atrasos inadimplencia falencia
    zaleglosc zaleglosci upadlosc
    maksuhairio maksuhairiot konkurssi
    """
)
HELD, EMPLOYERS = _words("worked held had"), _words("employers companies firms jobs")
EDUCATION = _words(
    """
    education educ schooling school degree diploma
    bildung ausbildung schulabschluss bildungsabschluss abschluss
    etudes diplome
    utdanning utdannelse uddannelse utbildning
    opleiding onderwijs
    educacion estudios estudio
    istruzione
    educacao escolaridade
    wyksztalcenie
    koulutus
    """
)
DURATION = _words(
    """
    tenure seniority experience since
    betriebszugehorigkeit beschaftigungsdauer wohndauer berufserfahrung dienstjahre
    anciennete experience
    ansiennitet botid arbeidserfaring anciennitet erhvervserfaring anstallningstid
    dienstverband woonduur werkervaring
    antiguedad experiencia
    anzianita esperienza
    antiguidade
    staz
    tyokokemus
    """
)
TERM = _words(
    """
    loan credit term terms contract maturity remaining duration repayment mortgage period per next until left
    kredit darlehen laufzeit restlaufzeit vertrag tilgung
    pret duree contrat echeance laan lopetid avdrag looptijd lening contract
    prestamo plazo contrato prestito durata scadenza emprestimo prazo kredyt laina
    """
)
BIRTH = ("geburts", "fodsels", "fodelse")
LETTERS = str.maketrans({"ø": "o", "Ø": "O", "æ": "a", "Æ": "A", "å": "aa", "Å": "Aa", "ß": "ss", "ł": "l", "Ł": "L"})
LOAN = _words(
    """
    loan kredit darlehen kreditbetrag darlehensbetrag kreditsumme pret emprunt laan laanebelop lening prestamo
    prestito emprestimo kredyt laina lainasumma
    """
)
AMOUNT = _words(
    """
    amount sum size value total requested asked applied wanted principal new eur usd gbp chf nok sek dkk pln
    betrag summe hohe montant belop belob belopp bedrag importe importo valor kwota maara
    """
)
SAVINGS = _words(
    """
    saving savings deposit deposits assets wealth cash
    ersparnisse erspartes guthaben vermogen epargne sparepenger sparing formue opsparing sparande spaargeld
    ahorro ahorros risparmi risparmio poupanca oszczednosci saastot
    """
)
DEBT = _words(
    """
    debt debts owed owes liabilities schulden schuld verbindlichkeiten dette dettes gjeld gald skuld skulder gaeld
    deuda deudas debito debiti divida dividas dlug zadluzenie velka velat
    """
)
INCOME = _words(
    """
    salary salaries income incomes wage wages earnings
    gehalt einkommen nettoeinkommen bruttoeinkommen lohn nettolohn bruttolohn verdienst
    salaire revenu revenus
    lonn aarslonn inntekt lon indkomst inkomst aarsinkomst
    loon salaris inkomen
    salario sueldo ingreso ingresos reddito stipendio renda rendimento
    wynagrodzenie dochod pensja zarobki
    palkka tulot
    """
)
PAYMENT = _words(
    """
    instalment instalments installment installments rent rents
    monatsrate kreditrate miete mensualite mensualites loyer
    avdrag husleie afdrag husleje amortering hyra
    aflossing huur
    cuota cuotas alquiler rata canone affitto prestacao prestacoes aluguel
    raty czynsz vuokra
    """
)
SHARE = _words("ratio share percent percentage perc pct per to prozent anteil quote prosent procent andel taux aandel")
UNSPECIFIC = _words(
    """
    other others unknown unspecified undisclosed misc miscellaneous
    andere anderes sonstige sonstiges unbekannt
    autre autres inconnu inconnue
    annet andre andet annat ovrig ovrige ukjent ukendt okand
    anders overig overige onbekend
    otro otra otros otras desconocido desconocida
    altro altra altri altre sconosciuto sconosciuta
    outro outra outros outras desconhecido desconhecida
    inne inny inna nieznane nieznany
    muu muut tuntematon
    """
)
CLASS = _words(
    """
    occupation profession sector industry region district
    beruf branche wirtschaftszweig bundesland metier secteur
    yrke naring bransje erhverv yrkesgrupp beroep bedrijfstak
    ocupacion profesion professione settore ocupacao profissao setor zawod branza ammatti toimiala
    """
)
UNEMPLOYED = _words(
    """
    unemployed jobless arbeitslos arbeitslose chomeur chomeuse chomage arbeidsledig arbejdslos arbetslos werkloos
    desempleado desempleada disoccupato disoccupata desempregado desempregada bezrobotny bezrobotna tyoton
    """
)
RETIRED = _words(
    """
    retired retiree pensioner rentner rentnerin pensioniert ruhestand retraite retraitee pensjonist pensionist
    pensioneret pensionerad gepensioneerd jubilado jubilada pensionato pensionata reformado reformada aposentado
    aposentada emeryt emerytka elakelainen
    """
)
WORSE = UNEMPLOYED | _words(
    """
    homeless parents divorced widowed separated
    obdachlos eltern geschieden verwitwet
    divorce divorcee veuf veuve
    foreldre foraldre foraldrar skilt skild
    dakloos ouders gescheiden
    divorciado divorciada genitori divorziato divorziata
    rodzice vanhemmat
    """
)
BESIDE = _words("with at in living lives bei chez hos bij con com de u")
IN_A_YEAR = {
    word: times
    for times, words in (
        (1.0, "years yrs jahre ans annees aar jaren anos anni lata vuodet"),
        (12.0, "months monate mois maaneder maanader maanden meses mesi miesiace kuukaudet"),
        (52.0, "weeks wochen semaines uker uger veckor weken semanas settimane tygodnie viikot"),
        (365.0, "days tage jours dager dage dagar dagen dias giorni dni paivat"),
    )
    for word in words.split()
}
COUNTED = frozenset(["num", "number", "count", "n"])
CALLED = frozenset(["id", "ids", "uuid", "guid", "key", "identifier", "ssn", "iban"])
TIMES = _words(
    """
    year years yr yrs month months mth mths week weeks day days quarter m y 24m 12m 6m 3m
    """
)


def name_words(name: Hashable) -> list[str]:
    """Return the words of a name in lower case, without accents.

    Examples
    --------
    >>> name_words("defaulted_last_year"), name_words("NumInqLast6M")
    (['defaulted', 'last', 'year'], ['num', 'inq', 'last', '6m'])
    >>> name_words("Betriebszugehörigkeit"), name_words("ancienneté")
    (['betriebszugehorigkeit'], ['anciennete'])
    """
    if not isinstance(name, str):
        return []
    whole = unicodedata.normalize("NFC", name).translate(LETTERS)
    plain = "".join(c for c in unicodedata.normalize("NFKD", whole) if not unicodedata.combining(c))
    parts = re.findall(r"\d+[MYmy](?![a-z])|\d+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+", plain)
    return [part.lower() for part in parts]


@lru_cache(maxsize=4096)
def is_education(name: Hashable) -> bool:
    """Return whether a name means a level of education."""
    return any(word in EDUCATION for word in name_words(name))


@lru_cache(maxsize=4096)
def is_unspecific(level: Hashable) -> bool:
    """Return whether a level means "other" or "unknown" and nothing else, or is a mark such as "?".

    Examples
    --------
    >>> is_unspecific("Other"), is_unspecific("?"), is_unspecific("Other-service"), is_unspecific("none")
    (True, True, False, False)
    """
    if not isinstance(level, str) or not any(map(str.isalnum, level)):
        return isinstance(level, str)
    return UNSPECIFIC.issuperset(name_words(level))


@lru_cache(maxsize=4096)
def is_worse(level: Hashable) -> bool:
    """Return whether a level is usually a worse situation than others.

    Examples
    --------
    >>> is_worse("unemployed"), is_worse("living with parents"), is_worse("two parents"), is_worse("with")
    (True, True, False, False)
    """
    words = {*name_words(level)} if isinstance(level, str) else set()
    return bool(words & WORSE) and words <= WORSE | BESIDE


@lru_cache(maxsize=4096)
def is_unemployed(level: Hashable) -> bool:
    """Return whether a level means that a person has no work.

    Examples
    --------
    >>> is_unemployed("Unemployed"), is_unemployed("not unemployed")
    (True, False)
    """
    words = {*name_words(level)}
    return bool(words) and words <= UNEMPLOYED


@lru_cache(maxsize=4096)
def is_retired(level: Hashable) -> bool:
    """Return whether a level means that a person is retired.

    Examples
    --------
    >>> is_retired("Retired"), is_retired("retired or unemployed")
    (True, False)
    """
    words = {*name_words(level)}
    return bool(words) and words <= RETIRED


@lru_cache(maxsize=4096)
def is_class(name: Hashable) -> bool:
    """Return whether a name means classes without an order, such as occupations.

    Examples
    --------
    >>> is_class("occupation_husb"), is_class("salary")
    (True, False)
    """
    return any(word in CLASS for word in name_words(name))


def is_age(name: Hashable) -> bool:
    """Return whether a name means the age of a person."""
    words = name_words(name)
    return len(words) <= 2 and any(word in AGE for word in words)


def time_units(words: list[str]) -> list[str]:
    """Return the units of time in a name, except after a number, as in "last 12 months"."""
    return [word for before, word in zip(["", *words], words) if word in IN_A_YEAR and not before.isdigit()]


def units_in_a_year(name: Hashable) -> float:
    """Return the yearly increase of a column whose name means an age or a duration; 0 for others.

    Examples
    --------
    >>> units_in_a_year("age"), units_in_a_year("months_in_job"), units_in_a_year("loan_months")
    (1.0, 12.0, 0.0)
    """
    if is_age(name):
        return 1.0
    words = name_words(name)
    units = time_units(words)
    return IN_A_YEAR[units[0]] if len(units) == 1 and not TERM & {*words} else 0.0


@lru_cache(maxsize=4096)
def is_loan(name: Hashable) -> bool:
    """Return whether a name means the amount of a loan: only words of loans and of amounts."""
    words = {*name_words(name)}
    return bool(words & LOAN and words <= LOAN | AMOUNT) or words == {"credit", "amount"}


@lru_cache(maxsize=4096)
def is_income(name: Hashable) -> bool:
    """Return whether a name means an income, but not a share of one or a payment.

    Examples
    --------
    >>> is_income("MonthlyIncome"), is_income("debt_to_income"), is_income("Nettoeinkommen")
    (True, False, True)
    """
    words = {*name_words(name)}
    return bool(words & INCOME) and not words & (SHARE | PAYMENT | DEBT | LOAN)


@lru_cache(maxsize=4096)
def is_owed(name: Hashable) -> bool:
    """Return whether a name means the amount of a loan or of a debt.

    Examples
    --------
    >>> is_owed("other_debt"), is_owed("DebtRatio"), is_owed("loan_amount")
    (True, False, True)
    """
    words = {*name_words(name)}
    return is_loan(name) or bool(words & DEBT and not words & SHARE)


@lru_cache(maxsize=4096)
def better_direction(name: Hashable) -> int:
    """Return 1 if higher amounts are usually better, by the name of a column, -1 if lower ones are, else 0.

    Incomes and savings are better if higher; debts and regular payments if lower. A loan has no better direction: a
    larger one may be what the person wants.

    Examples
    --------
    >>> better_direction("salary"), better_direction("installment_as_income_perc"), better_direction("age")
    (1, -1, 0)
    """
    words = {*name_words(name)}
    if words & (DEBT | PAYMENT):
        return -1
    return int(is_income(name) or bool(words & SAVINGS))
