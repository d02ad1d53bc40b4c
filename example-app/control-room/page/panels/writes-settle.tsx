import { useSignal } from '@preact/signals'
import type { SettleOrder } from '../../protocol.js'
import { act } from '../api.js'
import { Failure } from '../components/action-button.js'
import { useAsking } from '../components/asking.js'
import { Choice, Field } from '../components/field.js'

const TEXTS: Readonly<Record<SettleOrder['as'], string>> = {
  freed: 'nothing has happened: the next retry runs',
  done: 'it has happened: retries get this answer',
}

export interface SettleFormProps {
  readonly record: string
  readonly fence: number
  readonly endings: readonly SettleOrder['as'][]
}

/** Ends a write whose outcome nobody knows, as `service-auth settle` does. */
export function SettleForm({ record, fence, endings }: SettleFormProps) {
  const chosen = useSignal<SettleOrder['as'] | undefined>(undefined)
  const status = useSignal('201')
  const body = useSignal('{"id":"found-in-the-books"}')
  const { isUnderWay, failure, ask } = useAsking()
  const as = endings.find((ending) => ending === chosen.value) ?? endings[0]
  if (!as) return null

  async function settle(ending: SettleOrder['as']): Promise<void> {
    const answer = { status: Number(status.value), body: body.value }
    const order = { record, fence, as: ending, ...(ending === 'done' && answer) }
    const settled = await act('settle', order)
    if (!settled.isSettled) throw new Error(settled.why)
  }

  return (
    <form
      class="stack writes-settle"
      aria-label="Settle this write"
      onSubmit={(event) => {
        event.preventDefault()
        void ask(() => settle(as))
      }}
    >
      <Choice
        label="You have looked among the orders, and"
        value={as}
        options={endings.map((ending) => [ending, TEXTS[ending]] as const)}
        onChoose={(ending) => {
          chosen.value = ending
        }}
      />
      {as === 'done' && (
        <div class="stack">
          <Field label="Status">
            <input
              inputMode="numeric"
              value={status.value}
              onInput={({ currentTarget }) => {
                status.value = currentTarget.value
              }}
            />
          </Field>
          <Field label="Body, as JSON">
            <textarea
              rows={2}
              value={body.value}
              onInput={({ currentTarget }) => {
                body.value = currentTarget.value
              }}
            />
          </Field>
        </div>
      )}
      <div class="row">
        <button type="submit" class="button button-primary" aria-disabled={isUnderWay.value}>
          {isUnderWay.value ? 'Settling…' : 'Settle'}
        </button>
        <Failure text={failure.value} />
      </div>
    </form>
  )
}
