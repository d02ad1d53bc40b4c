import { type ComponentChildren, cloneElement, type VNode } from 'preact'
import { useId } from 'preact/hooks'

export interface FieldProps {
  readonly label: string
  readonly hint?: string
  /** One form control. */
  readonly children: VNode<{ id?: string; 'aria-describedby'?: string | undefined }>
}

/** A form control with its label and, where it needs one, a hint. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  const described = hint ? `${id}-hint` : undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {cloneElement(children, { id, 'aria-describedby': described })}
      {hint && (
        <p class="hint" id={described}>
          {hint}
        </p>
      )}
    </div>
  )
}

export interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly value: Value
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly onChoose: (value: Value) => void
}

/** One of a few, all of them in sight. */
export function Choice<Value extends string>(props: ChoiceProps<Value>) {
  const { label, value, options, onChoose } = props
  const name = useId()
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div class="choice-options">
        {options.map(([option, text]) => (
          <Option
            key={option}
            type="radio"
            name={name}
            isChosen={option === value}
            onChoose={() => onChoose(option)}
          >
            {text}
          </Option>
        ))}
      </div>
    </fieldset>
  )
}

interface OptionProps {
  readonly type: 'radio' | 'checkbox'
  readonly name: string
  readonly isChosen: boolean
  readonly onChoose: () => void
  readonly children: ComponentChildren
}

/** A radio button or a check box with its text. */
export function Option({ type, name, isChosen, onChoose, children }: OptionProps) {
  return (
    <label class="option">
      <input type={type} name={name} checked={isChosen} onChange={onChoose} />
      <span>{children}</span>
    </label>
  )
}
