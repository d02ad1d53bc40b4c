import type { act } from '../api.js'
import { Failure } from './action-button.js'
import { useAsking } from './asking.js'
import { Field } from './field.js'

export interface NumberChoiceProps {
  readonly label: string
  readonly hint?: string
  readonly value: number
  readonly values: readonly number[]
  readonly inWords: (value: number) => string
  readonly set: (value: number) => ReturnType<typeof act>
}

/** Sets a number of the room to one of a few. */
export function NumberChoice({ value, values, inWords, set, ...field }: NumberChoiceProps) {
  const { failure, ask } = useAsking()
  // Another program may have set another number.
  const offered = [...new Set([...values, value])].sort((one, other) => one - other)
  return (
    <div class="number-choice">
      <Field {...field}>
        <select
          value={value}
          onChange={({ currentTarget }) => void ask(() => set(Number(currentTarget.value)))}
        >
          {offered.map((each) => (
            <option key={each} value={each}>
              {inWords(each)}
            </option>
          ))}
        </select>
      </Field>
      <Failure text={failure.value} />
    </div>
  )
}
