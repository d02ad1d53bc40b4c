import { useSignal } from '@preact/signals'
import type { DeniedThing, DenyOrder } from '../../protocol.js'
import { act } from '../api.js'
import { Failure } from '../components/action-button.js'
import { useAsking } from '../components/asking.js'
import { Choice, Field } from '../components/field.js'
import { reveal } from '../components/reveal.js'
import type { Known } from './denylist-known.js'

type Kind = DeniedThing['kind']

const KINDS: readonly (readonly [Kind, string])[] = [
  ['caller', 'a caller'],
  ['key', 'a key'],
  ['token', 'a token'],
]

const VALUES: Readonly<Record<Kind, string>> = {
  caller: 'Caller',
  key: 'Key id',
  token: 'jti of the token',
}

/** Denies a caller, a key or a token to all receivers. */
export function DenyForm({ known }: { readonly known: Known }) {
  const kind = useSignal<Kind>('caller')
  const value = useSignal<string | undefined>(undefined)
  const reason = useSignal('looked suspicious')
  const seconds = useSignal('')
  const { isUnderWay, failure, ask } = useAsking()
  const offered = known[kind.value]
  const shown = value.value ?? offered[0] ?? ''

  function order(): DenyOrder {
    const thing = { kind: kind.value, value: shown.trim(), reason: reason.value.trim() }
    return seconds.value === '' ? thing : { ...thing, seconds: Number(seconds.value) }
  }

  return (
    <form
      class="stack"
      aria-label="Deny"
      onSubmit={(event) => {
        event.preventDefault()
        void ask(() => act('deny', order())).then(() => reveal('denied-now'))
      }}
    >
      <Choice
        label="Deny"
        value={kind.value}
        options={KINDS}
        onChoose={(chosen) => {
          kind.value = chosen
          value.value = undefined
        }}
      />
      <div class="grid">
        <Field label={VALUES[kind.value]}>
          <input
            spellcheck={false}
            list="denylist-known"
            value={shown}
            onInput={({ currentTarget }) => {
              value.value = currentTarget.value
            }}
          />
        </Field>
        <datalist id="denylist-known">
          {offered.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <Field label="Reason">
          <input
            value={reason.value}
            onInput={({ currentTarget }) => {
              reason.value = currentTarget.value
            }}
          />
        </Field>
        <Field label="For how many seconds (empty: no end)">
          <input
            inputMode="numeric"
            value={seconds.value}
            onInput={({ currentTarget }) => {
              seconds.value = currentTarget.value
            }}
          />
        </Field>
      </div>
      <div class="row">
        <button type="submit" class="button button-danger" aria-disabled={isUnderWay.value}>
          Deny
        </button>
        <Failure text={failure.value} />
      </div>
    </form>
  )
}
