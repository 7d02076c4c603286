import { Component, type ComponentChildren } from 'preact'

interface GuardProps {
  readonly fallback: ComponentChildren
  readonly children: ComponentChildren
}

/** Shows a fallback if its content throws, so that the rest of the page still works. */
export class Guard extends Component<GuardProps, { readonly hasFailed: boolean }> {
  static override getDerivedStateFromError = () => ({ hasFailed: true })

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children
  }
}
